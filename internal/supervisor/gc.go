package supervisor

import (
	"context"
	"os"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"agency"
	"agency/internal/duration"
	"agency/internal/file"
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
	Bytes     int64  // what its worktree takes on the disk
}

// Collect examines every run that has ended and is not removed, and reports which ones can be
// removed without losing anything: their worktrees are clean and their commits are on another
// branch. It keeps what is live, dirty, unmerged or unknown.
func (s *Supervisor) Collect(ctx context.Context, req CollectRequest) ([]Collected, error) {
	runs, err := s.Records.List(ctx, agency.Filter{})
	if err != nil {
		return nil, err
	}
	runs = slices.DeleteFunc(slices.Clone(runs), func(r *agency.Run) bool {
		return !r.Attempt.State.Final() || len(req.States) > 0 && !slices.Contains(req.States, r.Attempt.State)
	})
	found, place := make([]Collected, len(runs)), s.Repos.places()
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	if req.Apply {
		group.SetLimit(1) // what is removed decides what is lost with the next one
	}
	for i, r := range runs {
		group.Go(func() (err error) {
			found[i], err = s.collect(within, r, req, place)
			return err
		})
	}
	return found, group.Wait()
}

// placing returns the repository of a run, as Repos.Of does.
type placing func(ctx context.Context, r *agency.Run) (agency.Repo, error)

// collect is Collect for one run.
func (s *Supervisor) collect(ctx context.Context, r *agency.Run, req CollectRequest, place placing) (c Collected, err error) {
	c = Collected{Run: *r, Reason: s.reasonToKeep(ctx, r, req.OlderThan, place)}
	if c.Bytes, err = file.Usage(ctx, r.Worktree); err != nil {
		return c, err
	}
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
	return c, nil
}

// reasonToKeep returns what would be lost with a run's worktree; empty for nothing.
func (s *Supervisor) reasonToKeep(ctx context.Context, r *agency.Run, olderThan time.Duration, place placing) string {
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
	repo, err := place(ctx, r)
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
	case facts.Dirty && !s.Work.landedWhole(ctx, r, repo):
		return "uncommitted changes"
	case facts.Branch != r.Branch && facts.Ahead > 0:
		return "commits that are not on its branch"
	}
	known := []string{}
	switch landed, err := s.remover.landed(ctx, r); {
	case err != nil:
		return "its landings cannot be read"
	case landed != "":
		known = append(known, landed)
	}
	unmerged, err := s.Git.Unmerged(ctx, repo, r.Branch, known...)
	switch {
	case err != nil:
		return "its branch cannot be read"
	case unmerged:
		return "commits that are on no other branch"
	default:
		return ""
	}
}
