package queuer

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"agency"
	"agency/internal/file"
)

// envLimit is the largest environment that is read back, in bytes.
const envLimit = 8 << 20

// The checks of a repository's queues get the environment of the user who last added to one or set
// one going. It holds secrets, so it is stored apart from the record, readable by its owner alone,
// and removed when the queues are empty.

func (q *Queuer) envPath(repo string) string {
	return filepath.Join(q.Home, "queues", repo+".json")
}

func (q *Queuer) writeEnv(repo string, env []string) error {
	path := q.envPath(repo)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("create %s: %w", filepath.Dir(path), err)
	}
	// The token identifies the caller, which the checks are not.
	data, err := json.Marshal(agency.Environ(env).Without("AGENCY_TOKEN"))
	if err != nil {
		return fmt.Errorf("encode the environment: %w", err)
	}
	return file.WriteDurable(path, data)
}

func (q *Queuer) readEnv(repo string) ([]string, error) {
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
		err = os.RemoveAll(q.envPath(repo))
	}
	if err != nil && ctx.Err() == nil {
		q.Log.Warn("remove the environment of checks", "err", err)
	}
}
