package lander

import (
	"context"

	"agency"
)

// Review is what a run would bring into a branch.
type Review struct {
	Run         *agency.Run
	Target      string
	Method      agency.LandingMethod
	Commits     []agency.Commit
	Files       []agency.FileChange
	Uncommitted []agency.FileChange
	Nested      []string
	Conflicts   []string
	Obstacle    error // why it cannot land now; nil when nothing is in the way
	Checkout    string
	Report      *agency.Contract // what the agent itself reported last; nil when it reported nothing
	Landings    []agency.Landing
	Comments    []agency.LineComment
	Reviewed    []string // the files that the user has reviewed as they are
	// WouldLand is the landing of all of the work, without an id. Its target is empty when it
	// cannot even be tried, and its candidate when the work conflicts.
	WouldLand agency.Landing
	Repo      agency.Repo
}

// Review returns what a run would bring into a branch, with its uncommitted work, and what is in
// the way. Nothing changes.
func (l *Lander) Review(ctx context.Context, req Request) (*Review, error) {
	r, err := l.Runs.Resolve(ctx, req.Ref)
	if err != nil {
		return nil, err
	}
	repo, err := l.Repos.Of(ctx, r)
	if err != nil {
		return nil, err
	}
	v := &Review{
		Run: r, Report: r.Attempt.OwnReport(), Commits: []agency.Commit{}, Files: []agency.FileChange{}, Uncommitted: []agency.FileChange{},
		Nested: []string{}, Conflicts: []string{}, Reviewed: []string{}, Repo: repo,
	}
	if v.Landings, err = l.Store.Landings(ctx, r.ID); err != nil {
		return nil, err
	}
	if v.Comments, err = l.Store.Comments(ctx, r.ID); err != nil {
		return nil, err
	}
	p, err := l.plan(ctx, r, repo, req.Asked)
	if agency.IsCode(err, agency.CodeSourceMoved) || agency.IsCode(err, agency.CodeNothingToLand) {
		v.Obstacle = err
		return v, nil
	}
	if err != nil {
		return nil, err
	}
	p.env = req.Env
	if len(v.Comments) > 0 {
		if err := l.locate(ctx, repo, p, v.Comments); err != nil {
			return nil, err
		}
	}
	if v.Reviewed, err = l.reviewed(ctx, repo, p, r.ID); err != nil {
		return nil, err
	}
	v.Target, v.Method = p.settings.Target, p.settings.Method
	v.Uncommitted, v.Nested = append(v.Uncommitted, p.source.uncommitted...), append(v.Nested, p.source.nested...)
	if v.Commits, err = l.Git.Commits(ctx, repo, p.from(), p.source.commit); err != nil {
		return nil, err
	}
	if v.Obstacle = l.mayLand(r); v.Obstacle == nil && !p.same && p.settings.Uncommitted != agency.IncludeUncommitted {
		_, v.Obstacle = l.seal(ctx, p)
	}
	if err := l.foresee(ctx, repo, p, v); err != nil {
		return nil, err
	}
	at, err := l.place(ctx, p)
	v.Checkout, v.Obstacle = at, first(v.Obstacle, err)
	return v, nil
}

// foresee adds to the review the result of landing all of the work, and what is in the way of that.
func (l *Lander) foresee(ctx context.Context, repo agency.Repo, p *plan, v *Review) error {
	p.settings.Uncommitted, p.source.nested = agency.IncludeUncommitted, nil
	v.WouldLand = agency.Landing{RunID: v.Run.ID, Target: v.Target, Method: v.Method, Source: p.source.sealed, TargetOld: p.targetOld}
	c, err := l.candidate(ctx, p, "")
	if err != nil {
		begin, problem := l.begin(ctx, repo, p)
		if problem != nil {
			return problem
		}
		if v.Files, problem = l.Git.Changes(ctx, repo, begin, p.source.sealed); problem != nil {
			return problem
		}
	}
	switch {
	case agency.IsCode(err, agency.CodeMergeConflict):
		v.Conflicts, _ = agency.AsError(err).Details["files"].([]string)
		v.Obstacle = first(v.Obstacle, l.conflict(p, agency.Errorf(agency.CodeMergeConflict, "conflict in %s", named(v.Conflicts)).WithDetail("files", v.Conflicts)))
	case err != nil:
		v.Obstacle = first(v.Obstacle, err)
	default:
		v.Files, v.WouldLand.Candidate, v.WouldLand.Source = c.files, c.commit, c.source
	}
	return nil
}

func first(a, b error) error {
	if a != nil {
		return a
	}
	return b
}
