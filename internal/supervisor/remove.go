package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"agency"
	"agency/internal/killpoint"
	"agency/internal/supervisor/observe"
)

// RemoveRequest asks to remove a run.
type RemoveRequest struct {
	Ref          string
	Stop         bool // a run that is live is stopped first
	Discard      bool // nothing is saved first
	DeleteBranch bool // even of a run that is removed already
	again        bool // an earlier daemon was asked to
}

// Removal is the result of a removal.
type Removal struct {
	Run      *agency.Run
	Already  bool          // it was removed before
	Snapshot *agency.Saved // what was saved before the worktree was removed; nil when there was nothing to save
	Branch   string        // the branch that stays; empty when it was deleted
	Warnings []string      // what was already missing; never nil
}

// remover removes what a run has: its session, worktree and branch. It does not decide whether a
// run may go.
type remover struct {
	store      *Records
	repos      *Repos
	work       *Work
	settler    *settler
	containers *containers
	views      *views
	git        Git
	tmux       Tmux
	attempts   Attempts
	log        *slog.Logger
	now        func() time.Time
}

// RemoveRun removes an ended run's session and worktree, and its branch if asked. First it saves
// work that would be lost under refs/agency/snapshots, unless the request discards it: what is
// uncommitted, and commits on no branch that stays. It can be repeated: for a removed run it does
// nothing, and what is missing is a warning.
func (s *Supervisor) RemoveRun(ctx context.Context, req RemoveRequest) (*Removal, error) {
	if req.Stop {
		if err := s.stopToRemove(ctx, &req); err != nil {
			return nil, err
		}
	}
	r, release, err := s.Records.Hold(ctx, req.Ref)
	if err != nil {
		return nil, err
	}
	defer release()
	if a := &r.Attempt; !a.State.Final() && a.ErrorCode == "" {
		return nil, notEnded(r) // now, not when its creation is over, which may take minutes
	}
	// The undo of a failed creation may still be removing the same things.
	finish, err := s.settler.lockUndo(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	defer finish()
	if r, err = s.Records.Run(ctx, r.ID); err != nil {
		return nil, err
	}
	removal := &Removal{Run: r, Branch: r.Branch, Warnings: []string{}}
	if removal.Already = r.RemovedAt != nil; removal.Already {
		if err := s.containers.remove(ctx, r); err != nil {
			return nil, err
		}
		return removal, s.remover.removeRest(ctx, r, req, removal)
	}
	if !r.Attempt.State.Final() {
		return nil, notEnded(r)
	}
	if err := s.checkNotNeeded(ctx, r); err != nil {
		return nil, err
	}
	if !req.again {
		ctx = context.WithoutCancel(ctx) // the caller may go away
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	if err := s.remover.remove(ctx, r, req, removal); err != nil {
		if s.life.ctx.Err() == nil {
			s.remover.notRemoving(context.WithoutCancel(ctx), r)
		} // otherwise the next daemon continues
		return nil, err
	}
	return removal, nil
}

// notEnded is the error for a run that is to be removed and has not ended.
func notEnded(r *agency.Run) error {
	return agency.Errorf(agency.CodeInvalidState, "%s has not ended, and only an ended run can be removed", r.Ref()).
		WithHint("agency stop %s", r.Ref())
}

// stopToRemove stops the run of a request, unless a session needs it or it has ended. The request
// then names the run by its id: another run may take its name meanwhile.
func (s *Supervisor) stopToRemove(ctx context.Context, req *RemoveRequest) error {
	r, err := s.Records.Resolve(ctx, req.Ref)
	if err != nil || r.Attempt.State.Final() {
		return err
	}
	req.Ref = string(r.ID)
	if err := s.checkNotNeeded(ctx, r); err != nil {
		return err
	}
	_, err = s.StopRun(ctx, req.Ref)
	if now, lost := s.Records.Run(ctx, r.ID); lost == nil && now.Attempt.State.Final() {
		return nil // it ended by itself in between
	}
	return err
}

// checkNotNeeded refuses to remove a run that a session needs.
func (s *Supervisor) checkNotNeeded(ctx context.Context, r *agency.Run) error {
	session, err := s.NeededBy(ctx, r.ID)
	if err != nil || session == "" {
		return err
	}
	return agency.Errorf(agency.CodeInvalidState, "%s works for session %s, which needs its result", r.Ref(), session).
		WithHint("wait for its end: agency session wait %s; or end it: agency session cancel %s", session, session)
}

// remove removes a run, after it has recorded the request.
func (rm *remover) remove(ctx context.Context, r *agency.Run, req RemoveRequest, removal *Removal) error {
	if err := rm.settler.awaitRelease(ctx, r, releaseTimeout); err != nil {
		return err
	}
	_, err := rm.store.ChangeRun(ctx, r.ID, func(r *agency.Run) ([]agency.EventDraft, error) {
		r.Removing = &agency.Removing{At: rm.now(), Discard: req.Discard, DeleteBranch: req.DeleteBranch}
		return nil, nil
	})
	if err != nil {
		return err
	}
	killpoint.At("remove.intended")
	if err := rm.containers.remove(ctx, r); err != nil {
		removal.Warnings = append(removal.Warnings, "its container stays: "+agency.AsError(err).Message)
	}
	if err := rm.removeWorktree(ctx, r, req, removal); err != nil {
		return err
	}
	if err := removeTurns(r); err != nil {
		removal.Warnings = append(removal.Warnings, "what agency kept for the diff of its last turn stays: "+err.Error())
	}
	err = rm.tmux.Kill(ctx, r.Session())
	switch gone := agency.IsCode(err, agency.CodeTmuxSessionNotFound); {
	case err != nil && !gone: // the session may live, so the run is not removed yet
		return fmt.Errorf("end the tmux session %s: %w", r.Session(), err)
	case gone && r.Attempt.State != agency.Killed && r.Attempt.EndedBy != agency.EndedBySetupFailed:
		// The session of a stopped run ended with the stop, and a run without its setup never had
		// one.
		removal.Warnings = append(removal.Warnings, fmt.Sprintf("tmux session %s: %s", r.Session(), agency.AsError(err).Message))
	}
	killpoint.At("remove.session")
	if err := rm.attempts.Unlimit(observe.AttemptDir(r.Dir, r.Attempt.Number), r.ID, r.Attempt.Number); err != nil {
		removal.Warnings = append(removal.Warnings, agency.AsError(err).Message)
	}
	removal.Run, err = rm.store.ChangeRun(ctx, r.ID, func(r *agency.Run) ([]agency.EventDraft, error) {
		now := rm.now()
		r.RemovedAt, r.Removing = &now, nil
		return []agency.EventDraft{{Type: agency.RunRemoved, Data: map[string]any{
			"snapshot": removal.Snapshot, "branch": removal.Branch, "warnings": removal.Warnings,
		}}}, nil
	})
	if err != nil {
		return err
	}
	killpoint.At("remove.recorded")
	rm.views.write(ctx, removal.Run)
	rm.views.showRuns(ctx, removal.Run)
	return nil
}

// notRemoving clears the recorded request after a removal failed.
func (rm *remover) notRemoving(ctx context.Context, r *agency.Run) {
	_, err := rm.store.ChangeRun(ctx, r.ID, func(r *agency.Run) ([]agency.EventDraft, error) {
		r.Removing = nil
		return nil, nil
	})
	if err != nil {
		rm.log.Warn("record that a removal failed", "run", r.ID, "err", err) // the next daemon tries again
	}
}

// finishRemoval continues a removal that was cut off.
func (s *Supervisor) finishRemoval(r *agency.Run) {
	req := RemoveRequest{Ref: string(r.ID), Discard: r.Removing.Discard, DeleteBranch: r.Removing.DeleteBranch, again: true}
	if _, err := s.RemoveRun(s.life.ctx, req); err != nil && s.life.ctx.Err() == nil {
		s.Log.Error("finish removal", "run", r.ID, "err", err)
	}
}

func (rm *remover) removeWorktree(ctx context.Context, r *agency.Run, req RemoveRequest, removal *Removal) error {
	unlock, err := rm.repos.Lock(ctx, r.Repo.Fingerprint)
	if err != nil {
		return err
	}
	defer unlock()
	repo, err := rm.repos.Of(ctx, r)
	if err != nil {
		return rm.removeWithout(ctx, r, req, removal, err)
	}
	if _, err := os.Lstat(r.Worktree); errors.Is(err, os.ErrNotExist) {
		if err := rm.repos.movedHome(r); err != nil && !req.Discard {
			return err
		}
		where := "gone already"
		at, err := rm.git.Worktree(ctx, repo, r.Worktree)
		if err != nil {
			return agency.Errorf(agency.CodeCleanupFailed, "look for the worktree of %s: %w", r.Ref(), err)
		}
		if at != "" {
			where = "moved to " + at + " and stays there"
		}
		removal.Warnings = append(removal.Warnings, "worktree "+r.Worktree+" was "+where)
	} else if err := rm.saveUnlessDiscarded(ctx, r, repo, req, removal); err != nil {
		return err
	}
	own, err := rm.ownsBranch(ctx, r, repo)
	if err != nil {
		return err
	}
	if own && req.DeleteBranch && !req.Discard {
		if err := rm.work.checkSaved(ctx, r, repo); err != nil {
			return err
		}
	}
	killpoint.At("remove.saved")
	if err := rm.git.RemoveWorktree(ctx, repo, r.Worktree); err != nil {
		return err
	}
	killpoint.At("remove.worktree")
	switch {
	case !own && req.DeleteBranch:
		removal.spareBranch()
	case !own:
	case req.DeleteBranch:
		if err := rm.git.DeleteBranch(ctx, repo, r.Branch); err != nil {
			return err
		}
		killpoint.At("remove.branch")
		removal.Branch = ""
	default:
		rm.removeEmptyBranch(ctx, r, repo, removal)
	}
	return nil
}

// ownsBranch reports whether a branch of the name that a run has is the run's. It is not if the run
// never got as far as its worktree and another program made the branch.
func (rm *remover) ownsBranch(ctx context.Context, r *agency.Run, repo agency.Repo) (bool, error) {
	prepared, rebuilt, err := rm.settler.prepared(ctx, r)
	if prepared || rebuilt && r.Attempt.StartedAt != nil || r.Attempt.Number > 1 || err != nil {
		return err == nil, err
	}
	if there, err := rm.git.HasBranch(ctx, repo, r.Branch); !there || err != nil {
		return true, err
	}
	return rm.git.MadeBranch(ctx, repo, r.Worktree, r.Branch)
}

// spareBranch warns that a branch stays although the request asks to delete it.
func (m *Removal) spareBranch() {
	m.Warnings = append(m.Warnings, "branch "+m.Run.Branch+" stays: "+m.Run.Ref()+" did not make it")
}

// saveUnlessDiscarded saves the work in a worktree that is about to be removed.
func (rm *remover) saveUnlessDiscarded(ctx context.Context, r *agency.Run, repo agency.Repo, req RemoveRequest, removal *Removal) error {
	if req.Discard {
		return nil
	}
	err := rm.work.saveWork(ctx, r, repo, !req.DeleteBranch, removal)
	if err == nil {
		return nil
	}
	// The work in a path that is proven not to be a worktree cannot be saved the next time either. A
	// creation that was cut off leaves such a folder without work: its agent was never there.
	if broken := rm.repos.checkWorktree(ctx, r, repo); agency.IsCode(broken, agency.CodeInvalidState) {
		if prepared, rebuilt, err := rm.settler.prepared(ctx, r); err == nil && !prepared && !rebuilt {
			return nil
		}
		return agency.Errorf(agency.CodeCleanupFailed, "agency cannot save its work: %w", broken).
			WithHint("%s; or give the work up: agency rm --discard %s", agency.AsError(broken).Hint, r.Ref())
	}
	return err
}

// removeEmptyBranch deletes the branch of a run whose worktree is gone if all of it is in its base.
// A branch that it cannot delete stays, with a warning: the run is removed all the same.
func (rm *remover) removeEmptyBranch(ctx context.Context, r *agency.Run, repo agency.Repo, removal *Removal) {
	tip, err := rm.git.Contained(ctx, repo, r.Branch, r.Commit, r.Base)
	if err == nil && tip == "" {
		tip, err = rm.landed(ctx, r)
	}
	if err == nil && tip != "" {
		err = rm.git.DeleteBranchIn(ctx, repo, r.Branch, tip)
	}
	if err != nil {
		removal.Warnings = append(removal.Warnings, "branch "+r.Branch+" stays: "+agency.AsError(err).Message)
		return
	}
	if there, err := rm.git.HasBranch(ctx, repo, r.Branch); err == nil && !there {
		removal.Branch = ""
		if tip == "" {
			removal.Warnings = append(removal.Warnings, "the branch "+r.Branch+" was gone already")
		}
	}
}

// landed returns the commit of a run that landed last, which agency keeps under a ref of its own;
// empty for none.
func (rm *remover) landed(ctx context.Context, r *agency.Run) (string, error) {
	landings, err := rm.store.Landings(ctx, r.ID)
	for _, l := range slices.Backward(landings) {
		switch l.State {
		case agency.LandingFailed:
		case agency.LandingLanded:
			return l.Source, err
		default:
			return "", err
		}
	}
	return "", err
}

// removeWithout removes the worktree of a run whose repository err proves to be gone. Its work
// cannot be saved, so the worktree stays unless the request gives it up. With any other err the run
// stays as it is.
func (rm *remover) removeWithout(ctx context.Context, r *agency.Run, req RemoveRequest, removal *Removal, err error) error {
	gone := agency.IsCode(err, agency.CodeInvalidState)
	if _, statErr := os.Lstat(r.Worktree); gone && errors.Is(statErr, os.ErrNotExist) {
		removal.Warnings = append(removal.Warnings, "repository: "+agency.AsError(err).Message)
		return rm.git.RemoveWorktree(ctx, agency.Repo{}, r.Worktree) // what an earlier removal moved aside
	}
	if !gone {
		return agency.Errorf(agency.CodeCleanupFailed, "%s stays as it is: %w", r.Ref(), err).WithHint("try again: agency rm %s", r.Ref())
	}
	if !req.Discard {
		return agency.Errorf(agency.CodeCleanupFailed, "the work in %s cannot be saved: %w", r.Worktree, err).
			WithHint("if the repository was moved, look at its new place once: agency ls --repo PATH; to give the work up: agency rm --discard %s", r.Ref())
	}
	removal.Warnings, removal.Branch = append(removal.Warnings, "repository: "+agency.AsError(err).Message), ""
	return rm.git.RemoveWorktree(ctx, agency.Repo{}, r.Worktree)
}

// removeRest removes what is left of a run that is recorded as removed: its branch, if requested,
// and what an earlier version left because it took an error for an absence.
func (rm *remover) removeRest(ctx context.Context, r *agency.Run, req RemoveRequest, removal *Removal) error {
	left, err := rm.git.Leftover(r.Repo, r.Worktree)
	if err != nil {
		return agency.Errorf(agency.CodeCleanupFailed, "look for the worktree of %s: %w", r.Ref(), err)
	}
	if left {
		return rm.removeWorktree(ctx, r, req, removal)
	}
	unlock, err := rm.repos.Lock(ctx, r.Repo.Fingerprint)
	if err != nil {
		return err
	}
	defer unlock()
	repo, err := rm.repos.Of(ctx, r)
	if !req.DeleteBranch && agency.IsCode(err, agency.CodeInvalidState) { // the repository is gone
		removal.Branch = ""
		return nil
	}
	if err != nil {
		return err
	}
	if !req.DeleteBranch {
		there, err := rm.git.HasBranch(ctx, repo, r.Branch)
		if !there && err == nil {
			removal.Branch = ""
		}
		return err
	}
	own, err := rm.ownsBranch(ctx, r, repo)
	if err != nil {
		return err
	}
	if !own {
		removal.spareBranch()
		return nil
	}
	if !req.Discard {
		if err := rm.work.checkSaved(ctx, r, repo); err != nil {
			return err
		}
	}
	if err := rm.git.DeleteBranch(ctx, repo, r.Branch); err != nil {
		return err
	}
	removal.Branch = ""
	return nil
}
