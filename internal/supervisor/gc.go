package supervisor

import (
	"context"
	"os"
	"slices"
	"time"

	"agency"
	"agency/internal/duration"
)

// CollectRequest chooses what gc may remove.
type CollectRequest struct {
	OlderThan time.Duration  // since the run ended
	States    []agency.State // empty is every final state
	Apply     bool           // remove; otherwise only report
	Branches  bool           // delete their branches too
}

// Collected is one ended run and the decision of gc.
type Collected struct {
	Run       agency.Run
	Removable bool
	Reason    string // why it is kept, or "removable", or "removed"
}

// Collect examines every run that has ended and is not removed, and reports which ones can be
// removed without losing anything: their worktrees are clean and their commits are on another
// branch. It keeps what is live, dirty, unmerged or unknown.
func (s *Supervisor) Collect(ctx context.Context, req CollectRequest) ([]Collected, error) {
	runs, err := s.Records.Runs(ctx, agency.Filter{})
	if err != nil {
		return nil, err
	}
	found := []Collected{}
	for i := range runs {
		r := &runs[i]
		if !r.Attempt.State.Final() || (len(req.States) > 0 && !slices.Contains(req.States, r.Attempt.State)) {
			continue
		}
		c := Collected{Run: *r, Reason: s.reasonToKeep(ctx, r, req.OlderThan)}
		if c.Removable = c.Reason == ""; c.Removable {
			c.Reason = "removable"
		}
		if c.Removable && req.Apply {
			if _, err := s.RemoveRun(ctx, RemoveRequest{Ref: string(r.ID), DeleteBranch: req.Branches}); err != nil {
				c.Removable, c.Reason = false, agency.AsError(err).Message
			} else {
				c.Reason = "removed"
			}
		}
		found = append(found, c)
	}
	return found, nil
}

// reasonToKeep returns what would be lost with a run's worktree; empty for nothing.
func (s *Supervisor) reasonToKeep(ctx context.Context, r *agency.Run, olderThan time.Duration) string {
	if ended := r.Attempt.EndedAt; ended == nil || s.Now().Sub(*ended) < olderThan {
		return "ended less than " + duration.Short(olderThan) + " ago"
	}
	if r.Flag != nil {
		return "it is flagged"
	}
	switch session, err := s.NeededBy(ctx, r.ID); {
	case err != nil:
		return "its session cannot be read"
	case session != "":
		return "session " + string(session) + " needs it"
	}
	repo, err := s.Repos.of(ctx, r)
	if err != nil {
		return agency.AsError(err).Message
	}
	if _, err := os.Lstat(r.Worktree); err != nil {
		return "its worktree cannot be seen"
	}
	facts, err := s.Git.Inspect(ctx, repo, r.Worktree, r.Commit)
	switch {
	case err != nil:
		return "its worktree cannot be read"
	case facts.Dirty:
		return "uncommitted changes"
	case facts.Branch != r.Branch && facts.Ahead > 0:
		return "commits that are not on its branch"
	}
	unmerged, err := s.Git.Unmerged(ctx, repo, r.Branch)
	switch {
	case err != nil:
		return "its branch cannot be read"
	case unmerged:
		return "commits that are on no other branch"
	default:
		return ""
	}
}
