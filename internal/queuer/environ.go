package queuer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"agency"
	"agency/internal/file"
)

// envLimit is the largest environment that is read back, in bytes.
const envLimit = 8 << 20

// The checks of a repository's queues get the environment of the caller who last added to one of
// them or made one continue. It holds secrets, so it is stored apart from the record, readable by
// its owner alone, and removed when the queues are empty. Only the user decides in whose name
// commits are made: that is stored beside it, and an agent that adds an entry does not change it.

func (q *Queuer) envPath(repo string) string {
	return filepath.Join(q.Home, "queues", repo+".json")
}

func (q *Queuer) authorPath(repo string) string {
	return filepath.Join(q.Home, "queues", repo+"-author.json")
}

// writeEnv stores the environment of a caller: by is agency.User or the id of a run.
func (q *Queuer) writeEnv(repo, by string, env agency.Environ) error {
	path := q.envPath(repo)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("create %s: %w", filepath.Dir(path), err)
	}
	// The token identifies the caller; checks must not have it.
	data, err := json.Marshal(env.Without("AGENCY_TOKEN"))
	if err != nil {
		return fmt.Errorf("encode the environment: %w", err)
	}
	if err := file.WriteDurable(path, data); err != nil || by != agency.User {
		return err
	}
	if data, err = json.Marshal(env.Author()); err != nil {
		return fmt.Errorf("encode who makes commits: %w", err)
	}
	return file.WriteDurable(q.authorPath(repo), data)
}

// author returns the variables by which git finds in whose name commits are made; none when no user
// has set them.
func (q *Queuer) author(repo string) (agency.Environ, error) {
	data, err := file.ReadRegular(q.authorPath(repo), envLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var env agency.Environ
	if err == nil {
		err = json.Unmarshal(data, &env)
	}
	if err != nil {
		return nil, agency.Errorf(agency.CodeInvalidState, "agency cannot read in whose name it makes the commits: %w", err).WithHint("give it again: agency queue resume")
	}
	return env, nil
}

func (q *Queuer) readEnv(repo string) (agency.Environ, error) {
	data, err := file.ReadRegular(q.envPath(repo), envLimit)
	var env agency.Environ
	if err == nil {
		err = json.Unmarshal(data, &env)
	}
	if err != nil {
		return nil, agency.Errorf(agency.CodeInvalidState, "the environment for the checks cannot be read: %w", err).WithHint("give it again: agency queue resume")
	}
	return env, nil
}

// dropEnv removes the environment of a repository whose queues are empty.
func (q *Queuer) dropEnv(ctx context.Context, repo string) {
	q.environs.Lock()
	defer q.environs.Unlock()
	open, err := q.Store.OpenQueues(ctx)
	if err == nil && !slices.ContainsFunc(open, func(ref agency.QueueRef) bool { return ref.Repo == repo }) {
		err = errors.Join(os.RemoveAll(q.envPath(repo)), os.RemoveAll(q.authorPath(repo)))
	}
	if err != nil && ctx.Err() == nil {
		q.Log.Warn("remove the environment of checks", "err", err)
	}
}
