package lander

import (
	"context"

	"agency"
)

// Final returns those of the runs whose work no other of them has, in their order. The keys of
// parts are the runs whose work others have, because these were started from it; the values are
// those others. A run that changed nothing is in neither.
func (pl *planner) Final(ctx context.Context, runs []*agency.Run) (final []*agency.Run, parts map[agency.RunID][]*agency.Run, err error) {
	parts = map[agency.RunID][]*agency.Run{}
	works := make([]source, len(runs))
	for i, r := range runs {
		repo, err := pl.Repos.Of(ctx, r)
		if err != nil {
			return nil, nil, err
		}
		works[i], err = pl.source(ctx, r, repo)
		if err != nil && !agency.IsCode(err, agency.CodeSourceMoved) && !agency.IsCode(err, agency.CodeNothingToLand) {
			return nil, nil, err
		}
	}
	idle := func(i int) bool {
		w := &works[i]
		return w.commit == runs[i].Commit && len(w.uncommitted) == 0 && len(w.nested) == 0
	}
	for i, r := range runs {
		if idle(i) {
			continue
		}
		for j, other := range runs {
			if i == j || idle(j) {
				continue
			}
			has, err := pl.has(ctx, r, &works[i], other, &works[j])
			if err != nil {
				return nil, nil, err
			}
			if has && (i < j || works[i].commit != works[j].commit) { // of two with the same work, the last one is final
				parts[r.ID] = append(parts[r.ID], other)
			}
		}
		if len(parts[r.ID]) == 0 {
			final = append(final, r)
		}
	}
	return final, parts, nil
}

// has reports whether another run has the work of a run: its commits, and what was uncommitted when
// the other run began.
func (pl *planner) has(ctx context.Context, r *agency.Run, work *source, other *agency.Run, others *source) (bool, error) {
	if work.commit == "" || others.commit == "" {
		return false, nil // work that cannot be read does not count here: its landing returns the error
	}
	repo, err := pl.Repos.Of(ctx, r)
	if err != nil {
		return false, err
	}
	has, err := pl.Git.Descends(ctx, repo, others.commit, work.commit)
	if err != nil || !has || len(work.uncommitted) == 0 && len(work.nested) == 0 {
		return has, err
	}
	return pl.sameTree(ctx, repo, work.sealed, other.Commit)
}
