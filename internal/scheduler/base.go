package scheduler

import (
	"context"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/singleflight"

	"agency"
)

// bases caches the results of a session's agents and their merges: neither changes once the agents
// are complete. It lives as long as the daemon, and is emptied when the user resumes the session,
// since they may have fixed something.
type bases struct {
	work  singleflight.Group // agents with the same base wait for one computation of it
	mu    sync.Mutex
	known map[string]string // commits by their source
}

func newBases() *bases { return &bases{known: map[string]string{}} }

// get returns the commit for a source. find computes it the first time.
func (b *bases) get(from string, find func() (string, error)) (string, error) {
	commit, err, _ := b.work.Do(from, func() (any, error) {
		b.mu.Lock()
		commit, known := b.known[from]
		b.mu.Unlock()
		if known {
			return commit, nil
		}
		commit, err := find()
		if err == nil {
			b.mu.Lock()
			b.known[from] = commit
			b.mu.Unlock()
		}
		return commit, err
	})
	return commit.(string), err
}

// base returns the commit at which an agent's branch begins when its base is the results of its
// dependencies; else it is empty. It ends with ctx, which is the same for all agents of the
// session.
func (s *Scheduler) base(ctx context.Context, j *job) (string, error) {
	if len(j.after) == 0 {
		return "", nil
	}
	commits := []string{}
	for _, id := range j.after {
		commit, err := j.bases.get("run "+string(id), func() (string, error) { return s.Runs.Result(ctx, id) })
		if err != nil {
			return "", err
		}
		if !slices.Contains(commits, commit) {
			commits = append(commits, commit)
		}
	}
	if len(commits) == 1 {
		return commits[0], nil
	}
	merged, err := j.bases.get(strings.Join(commits, " "), func() (string, error) { return s.Runs.Merge(ctx, &j.session, commits) })
	if agency.IsCode(err, agency.CodeMergeConflict) {
		return "", agency.Errorf(agency.CodeMergeConflict, "the results of %s %w", strings.Join(j.plan.After, " and "), err)
	}
	return merged, err
}
