package lander

import (
	"context"
	"slices"
	"time"

	"agency"
)

// Link is the work of one run in a Chain.
type Link struct {
	Run     *agency.Run
	Landing agency.Landing // without an id; TargetOld is the commit of the link before it
	Tree    string         // of Landing.Candidate
	Source  string         // the commit of its work; empty when unknown. Uncommitted work is refused
	// Err is why the run cannot land on top of those before it. The link is then left out: the next
	// one is on top of the link before it.
	Err   error
	Alone bool // Err also holds on the target alone
}

// Chain is what a branch becomes with the work of some runs, each on top of the one before. Nothing
// has moved.
type Chain struct {
	Target, TargetOld string
	Repo              agency.Repo
	env               agency.Environ
	Tree              string // of TargetOld
	Links             []Link
	plan              *plan // of the last link without an error
}

// Accept returns why a link from a commit to another must not land, or nil.
type Accept func(ctx context.Context, link *Link, from string) error

// Chain makes the commits with which the work of runs would land in a branch, in this order, and
// proves each. The error is about the branch; the error of a run is in its link. accept may refuse
// links. env is the environment of the user for whom they land, as in a Request.
func (l *Lander) Chain(ctx context.Context, target string, runs []agency.RunID, env agency.Environ, accept Accept) (*Chain, error) {
	all := make([]*agency.Run, 0, len(runs))
	for _, id := range runs {
		r, err := l.Runs.Resolve(ctx, string(id))
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return l.chain(ctx, target, all, env, accept)
}

func (l *Lander) chain(ctx context.Context, target string, runs []*agency.Run, env agency.Environ, accept Accept) (*Chain, error) {
	c := &Chain{Target: target, env: env}
	var err error
	if c.Repo, err = l.Repos.Of(ctx, runs[0]); err != nil {
		return nil, err
	}
	if c.TargetOld, err = l.Git.CommitOf(ctx, c.Repo, target); err != nil {
		return nil, noTarget(err, c.Repo, target)
	}
	if c.Tree, err = l.Git.Tree(ctx, c.Repo, c.TargetOld); err != nil {
		return nil, err
	}
	on := c.TargetOld
	for _, r := range runs {
		link, p := l.link(ctx, c, r, on)
		if agency.IsCode(link.Err, agency.CodeMergeConflict) && on != c.TargetOld {
			alone, _ := l.link(ctx, c, r, c.TargetOld)
			link.Alone = alone.Err != nil
		}
		if link.Err == nil && accept != nil {
			link.Err = accept(ctx, &link, on)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if link.Err == nil {
			on, c.plan = link.Landing.Candidate, p
		}
		c.Links = append(c.Links, link)
	}
	return c, nil
}

// link makes the commit of one run on top of another commit than the target's own.
func (l *Lander) link(ctx context.Context, c *Chain, r *agency.Run, on string) (Link, *plan) {
	link := Link{Run: r, Alone: on == c.TargetOld}
	fail := func(err error) (Link, *plan) { link.Err = err; return link, nil }
	if err := l.mayLand(r); err != nil {
		link.Alone = true
		return fail(err)
	}
	var before []string
	if on != c.TargetOld {
		for i := range c.Links {
			if c.Links[i].Err == nil {
				before = append(before, c.Links[i].Landing.Source)
			}
		}
	}
	p, err := l.plan(ctx, r, c.Repo, agency.LandingSettings{Target: c.Target, Uncommitted: agency.RefuseUncommitted}, before...)
	if err != nil {
		link.Alone = true
		return fail(err)
	}
	link.Source, p.targetOld, p.env = p.source.commit, on, c.env
	made, err := l.candidate(ctx, p, "")
	if err != nil {
		return fail(err)
	}
	link.Landing = agency.Landing{
		RunID: r.ID, Target: c.Target, Method: p.settings.Method, Source: made.source, TargetOld: on, Candidate: made.commit, State: agency.LandingMoving,
	}
	link.Tree, err = l.Git.Tree(ctx, c.Repo, made.commit)
	if err != nil {
		return fail(err)
	}
	return link, p
}

// LandChain moves a branch in one step to what it becomes with the work of some links of a Chain, in
// this order, if that is still the same work and makes the checked tree, on the checked commit of
// the target. Otherwise the error is E_TARGET_MOVED, and nothing has moved. The results are in the
// order of the links.
func (l *Lander) LandChain(ctx context.Context, target string, links []*Link, env agency.Environ, on, tree string) ([]Result, error) {
	landings, err := l.landChain(ctx, target, links, env, on, tree)
	if err != nil {
		return nil, err
	}
	results := make([]Result, len(landings))
	for i := range landings {
		results[i].Landing, results[i].Warnings = *landings[i], []string{}
		if err := l.after(ctx, &results[i]); err != nil {
			results[i].Warnings = append(results[i].Warnings, agency.AsError(err).Message)
		}
	}
	return results, nil
}

func (l *Lander) landChain(ctx context.Context, target string, links []*Link, env agency.Environ, on, tree string) ([]*agency.Landing, error) {
	ids := make([]agency.RunID, 0, len(links))
	for _, link := range links {
		ids = append(ids, link.Run.ID)
	}
	held := map[agency.RunID]*agency.Run{}
	for _, id := range slices.Sorted(slices.Values(ids)) { // always in the same order, so that no two landings wait for each other
		r, release, err := l.Runs.Hold(ctx, string(id))
		if err != nil {
			return nil, err
		}
		defer release()
		held[id] = r
	}
	unlock, err := l.Repos.Lock(ctx, held[ids[0]].Repo.Fingerprint)
	if err != nil {
		return nil, err
	}
	defer unlock()
	runs := make([]*agency.Run, 0, len(ids))
	repo, err := l.Repos.Of(ctx, held[ids[0]])
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if _, err := l.settleRun(ctx, held[id], repo); err != nil {
			return nil, err
		}
		runs = append(runs, held[id])
	}
	c, err := l.chain(ctx, target, runs, env, nil)
	if err != nil {
		return nil, err
	}
	for i := range c.Links {
		link := &c.Links[i]
		if link.Err != nil {
			return nil, link.Err
		}
		if link.Source != links[i].Source { // an approval is one of commits, not only of their files
			return nil, agency.Errorf(agency.CodeTargetMoved, "the work of %s changed since it was checked", link.Run.Ref())
		}
	}
	if last := &c.Links[len(c.Links)-1]; c.TargetOld != on || last.Tree != tree {
		return nil, agency.Errorf(agency.CodeTargetMoved, "%q or the work of %s changed since it was checked", target, last.Run.Ref())
	}
	at, err := l.place(ctx, c.plan)
	if err != nil {
		return nil, err
	}
	landings := make([]*agency.Landing, 0, len(c.Links))
	for i := range c.Links {
		c.Links[i].Landing.Worktree, c.Links[i].Landing.Cleanup = at, c.plan.settings.After == agency.AfterGC
		landings = append(landings, &c.Links[i].Landing)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), moveTimeout)
	defer cancel()
	return landings, l.move(ctx, c.Repo, runs, landings, "agency queue")
}

// Landed settles the landings of a run that an earlier daemon left open, and returns the newest one
// that brought a source into a target since a time; nil when there is none.
func (l *Lander) Landed(ctx context.Context, id agency.RunID, target, source string, since time.Time) (*agency.Landing, error) {
	all, err := l.Store.Landings(ctx, id)
	for i := range all {
		if open := &all[i]; err == nil && (open.State == agency.LandingMoving || open.State == agency.LandingUndoing) {
			if err = l.settleHeld(ctx, open); err == nil {
				all, err = l.Store.Landings(ctx, id)
			}
		}
	}
	if err != nil {
		return nil, err
	}
	for i := range slices.Backward(all) {
		if a := &all[i]; a.State == agency.LandingLanded && a.Target == target && a.Source == source && !a.CreatedAt.Before(since) {
			return a, nil
		}
	}
	return nil, nil //nolint:nilnil // there is none
}
