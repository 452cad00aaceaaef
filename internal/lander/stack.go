package lander

import (
	"context"
	"slices"

	"agency"
)

// mostLanded is how many of the newest landings in a repository findStack looks at.
const mostLanded = 200

// findStack looks for work of other runs in the source of a plan that the target has, for example
// of an agent from whose result the run was started. The run's own work begins where that work
// ends. Git itself does not know it when that work was squashed or rebased, and would merge it
// again.
//
// before are sources that the target will have when the plan's own work lands.
func (pl *planner) findStack(ctx context.Context, p *plan, before []string) error {
	landed, err := pl.Store.LandedIn(ctx, p.run.Repo.Fingerprint, mostLanded)
	if err != nil {
		return err
	}
	landed = slices.DeleteFunc(landed, func(a agency.Landing) bool { return a.RunID == p.run.ID || a.Target != p.settings.Target })
	candidates := make([]string, 0, len(landed))
	for i := range landed {
		candidates = append(candidates, landed[i].Candidate)
	}
	if len(candidates) > 0 {
		gone, err := pl.Git.Missing(ctx, p.repo, p.targetOld, candidates)
		if err != nil {
			return err
		}
		for i := range landed {
			if !slices.Contains(gone, landed[i].Candidate) {
				before = append(before, landed[i].Source)
			}
		}
	}
	if len(before) == 0 {
		return nil
	}
	newest, err := pl.Git.Covered(ctx, p.repo, p.targetOld, p.source.sealed, before)
	switch {
	case err != nil || len(newest) == 0:
		return err
	case len(newest) == 1:
		p.base = newest[0]
		return nil
	}
	p.base, err = pl.Git.Merge(ctx, p.repo, newest, "work that landed before")
	if agency.IsCode(err, agency.CodeMergeConflict) {
		p.base = "" // the run resolved the conflict: git merges all of its work
		return nil
	}
	return err
}
