package scheduler

import (
	"context"
	"slices"
	"strings"
	"sync"

	"agency"
)

// bases remembers what the agents of a session came to and what their results merged to: neither changes once they are complete.
// It is of this daemon's time only, and begins anew when a person has the session go on, since they may have mended something.
type bases struct {
	mu      sync.Mutex // held while git works, so that those that start from the same results wait for them instead of repeating it
	results map[agency.RunID]string
	merges  map[string]string // by the commits in their order
}

func newBases() *bases {
	return &bases{results: map[agency.RunID]string{}, merges: map[string]string{}}
}

// base is the commit that an agent's branch begins at when its base is the results of those that it comes after; else it is empty.
// It ends with ctx.
func (s *Scheduler) base(ctx context.Context, j *job) (string, error) {
	if len(j.after) == 0 {
		return "", nil
	}
	j.bases.mu.Lock()
	defer j.bases.mu.Unlock()
	commits := []string{}
	for _, id := range j.after {
		commit, known := j.bases.results[id]
		if !known {
			var err error
			if commit, err = s.Runs.Result(ctx, id); err != nil {
				return "", err
			}
			j.bases.results[id] = commit
		}
		if !slices.Contains(commits, commit) {
			commits = append(commits, commit)
		}
	}
	if len(commits) == 1 {
		return commits[0], nil
	}
	key := strings.Join(commits, " ")
	if merged, known := j.bases.merges[key]; known {
		return merged, nil
	}
	merged, err := s.Runs.Merge(ctx, &j.session, commits)
	if agency.IsCode(err, agency.CodeMergeConflict) {
		return "", agency.Errorf(agency.CodeMergeConflict, "the results of %s %w", strings.Join(j.plan.After, " and "), err)
	}
	if err == nil {
		j.bases.merges[key] = merged
	}
	return merged, err
}
