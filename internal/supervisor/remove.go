package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"agency"
	"agency/internal/killpoint"
)

// RemoveRequest asks to remove a run.
type RemoveRequest struct {
	Ref          string
	Stop         bool // a run that is live is stopped first
	Discard      bool // even when work is lost that cannot be saved
	DeleteBranch bool // even of a run that is removed already
	again        bool // an earlier daemon was asked to
}

// Removal is the result of a removal.
type Removal struct {
	Run      *agency.Run
	Snapshot *agency.Saved // what was saved before the worktree was removed; nil when there was nothing to save
	Branch   string        // the branch that stays; empty when it was deleted
	Warnings []string      // what was already missing; never nil
}

// RemoveRun removes an ended run's session and worktree, and its branch if asked. First it saves
// uncommitted or unmerged work under refs/agency/snapshots. It can be repeated: for a removed run
// it does nothing, and what is missing is a warning.
func (s *Supervisor) RemoveRun(ctx context.Context, req RemoveRequest) (*Removal, error) {
	if req.Stop {
		if err := s.stopToRemove(ctx, &req); err != nil {
			return nil, err
		}
	}
	r, release, err := s.Records.hold(ctx, req.Ref)
	if err != nil {
		return nil, err
	}
	defer release()
	// The undo of a failed creation may still be removing the same things.
	finish, err := s.settler.locks.Lock(ctx, "undo "+string(r.ID))
	if err != nil {
		return nil, err
	}
	defer finish()
	if r, err = s.Records.Run(ctx, r.ID); err != nil {
		return nil, err
	}
	removal := &Removal{Run: r, Branch: r.Branch, Warnings: []string{}}
	if r.RemovedAt != nil {
		return removal, s.removeRest(ctx, r, req, removal)
	}
	if !r.Attempt.State.Final() {
		return nil, agency.Errorf(agency.CodeInvalidState, "%s is %s, and only an ended run can be removed", r.Ref(), r.Attempt.State).
			WithHint("agency stop %s", r.Ref())
	}
	if err := s.checkNotNeeded(ctx, r); err != nil {
		return nil, err
	}
	if !req.again {
		ctx = context.WithoutCancel(ctx) // the caller may go away
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	if err := s.remove(ctx, r, req, removal); err != nil {
		if s.life.ctx.Err() == nil {
			s.notRemoving(context.WithoutCancel(ctx), r)
		} // otherwise the next daemon continues
		return nil, err
	}
	return removal, nil
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
func (s *Supervisor) remove(ctx context.Context, r *agency.Run, req RemoveRequest, removal *Removal) error {
	if err := s.settler.awaitRelease(ctx, r, releaseTimeout); err != nil {
		return err
	}
	_, err := s.Records.ChangeRun(ctx, r.ID, func(r *agency.Run) ([]agency.EventDraft, error) {
		r.Removing = &agency.Removing{At: s.Now(), Discard: req.Discard, DeleteBranch: req.DeleteBranch}
		return nil, nil
	})
	if err != nil {
		return err
	}
	killpoint.At("remove.intended")
	if err := s.removeWorktree(ctx, r, req, removal); err != nil {
		return err
	}
	err = s.Tmux.Kill(ctx, r.Session())
	if gone := agency.IsCode(err, agency.CodeTmuxSessionNotFound); err != nil && (!gone || r.Attempt.State != agency.Killed && r.Attempt.EndedBy != agency.EndedBySetupFailed) {
		// The session of a stopped run ended with the stop, and a run without its setup never had
		// one.
		removal.Warnings = append(removal.Warnings, fmt.Sprintf("tmux session %s: %s", r.Session(), agency.AsError(err).Message))
	}
	killpoint.At("remove.session")
	removal.Run, err = s.Records.ChangeRun(ctx, r.ID, func(r *agency.Run) ([]agency.EventDraft, error) {
		now := s.Now()
		r.RemovedAt, r.Removing = &now, nil
		return []agency.EventDraft{{Type: agency.RunRemoved, Data: map[string]any{
			"snapshot": removal.Snapshot, "branch": removal.Branch, "warnings": removal.Warnings,
		}}}, nil
	})
	if err != nil {
		return err
	}
	killpoint.At("remove.recorded")
	s.views.write(ctx, removal.Run)
	s.views.showRuns(ctx, removal.Run)
	return nil
}

// notRemoving clears the recorded request after a removal failed.
func (s *Supervisor) notRemoving(ctx context.Context, r *agency.Run) {
	_, err := s.Records.ChangeRun(ctx, r.ID, func(r *agency.Run) ([]agency.EventDraft, error) {
		r.Removing = nil
		return nil, nil
	})
	if err != nil {
		s.Log.Warn("record that a removal failed", "run", r.ID, "err", err) // the next daemon tries again
	}
}

// finishRemoval continues a removal that was cut off.
func (s *Supervisor) finishRemoval(r *agency.Run) {
	req := RemoveRequest{Ref: string(r.ID), Discard: r.Removing.Discard, DeleteBranch: r.Removing.DeleteBranch, again: true}
	if _, err := s.RemoveRun(s.life.ctx, req); err != nil && s.life.ctx.Err() == nil {
		s.Log.Error("finish removal", "run", r.ID, "err", err)
	}
}

func (s *Supervisor) removeWorktree(ctx context.Context, r *agency.Run, req RemoveRequest, removal *Removal) error {
	unlock, err := s.Repos.lock(ctx, r.Repo.Fingerprint)
	if err != nil {
		return err
	}
	defer unlock()
	repo, err := s.Repos.of(ctx, r)
	if err != nil {
		return s.removeWithout(ctx, r, req, removal, err)
	}
	if _, err := os.Lstat(r.Worktree); errors.Is(err, os.ErrNotExist) {
		if err := s.Repos.movedHome(r); err != nil && !req.Discard {
			return err
		}
		where := "gone already"
		at, err := s.Git.Worktree(ctx, repo, r.Worktree)
		if err != nil {
			return agency.Errorf(agency.CodeCleanupFailed, "look for the worktree of %s: %w", r.Ref(), err)
		}
		if at != "" {
			where = "moved to " + at + " and stays there"
		}
		removal.Warnings = append(removal.Warnings, "worktree "+r.Worktree+" was "+where)
	} else if err := s.Work.saveWork(ctx, r, repo, req.Discard, removal); err != nil {
		// Only a path that is proven not to be a worktree is given up; the work of any other may be
		// saved the next time.
		broken := s.Repos.checkWorktree(ctx, r, repo)
		if !agency.IsCode(broken, agency.CodeInvalidState) {
			return err
		}
		if !req.Discard {
			return agency.Errorf(agency.CodeCleanupFailed, "what is in it cannot be saved: %w", broken).
				WithHint("%s; or give it up: agency rm --discard %s", agency.AsError(broken).Hint, r.Ref())
		}
		removal.Warnings = append(removal.Warnings, agency.AsError(broken).Message+", and nothing in it was saved")
	}
	if req.DeleteBranch && !req.Discard {
		if err := s.Work.checkSaved(ctx, r, repo); err != nil {
			return err
		}
	}
	killpoint.At("remove.saved")
	if err := s.Git.RemoveWorktree(ctx, repo, r.Worktree); err != nil {
		return err
	}
	killpoint.At("remove.worktree")
	if req.DeleteBranch {
		if err := s.Git.DeleteBranch(ctx, repo, r.Branch); err != nil {
			return err
		}
		killpoint.At("remove.branch")
		removal.Branch = ""
		return nil
	}
	s.removeEmptyBranch(ctx, r, repo, removal)
	return nil
}

// removeEmptyBranch deletes the branch of a run whose worktree is gone if all of it is in its base.
// A branch that it cannot delete stays, with a warning: the run is removed all the same.
func (s *Supervisor) removeEmptyBranch(ctx context.Context, r *agency.Run, repo agency.Repo, removal *Removal) {
	if r.Attempt.ErrorCode == agency.CodeBranchExists {
		return // it is not the branch of this run
	}
	tip, err := s.Git.Contained(ctx, repo, r.Branch, r.Commit, r.Base)
	if err == nil && tip != "" {
		err = s.Git.DeleteBranchAt(ctx, repo, r.Branch, tip)
	}
	if err != nil {
		removal.Warnings = append(removal.Warnings, "branch "+r.Branch+" stays: "+agency.AsError(err).Message)
		return
	}
	if there, err := s.Git.HasBranch(ctx, repo, r.Branch); err == nil && !there {
		removal.Branch = ""
	}
}

// removeWithout removes the worktree of a run whose repository err proves to be gone. Its work
// cannot be saved, so the worktree stays unless the request gives it up. With any other err the run
// stays as it is.
func (s *Supervisor) removeWithout(ctx context.Context, r *agency.Run, req RemoveRequest, removal *Removal, err error) error {
	gone := agency.IsCode(err, agency.CodeInvalidState)
	if _, statErr := os.Lstat(r.Worktree); gone && errors.Is(statErr, os.ErrNotExist) {
		removal.Warnings = append(removal.Warnings, "repository: "+agency.AsError(err).Message)
		return s.Git.RemoveWorktree(ctx, agency.Repo{}, r.Worktree) // what an earlier removal moved aside
	}
	if !gone {
		return agency.Errorf(agency.CodeCleanupFailed, "%s stays as it is: %w", r.Ref(), err).WithHint("try again: agency rm %s", r.Ref())
	}
	if !req.Discard {
		return agency.Errorf(agency.CodeCleanupFailed, "the work in %s cannot be saved: %w", r.Worktree, err).
			WithHint("if the repository was moved, look at its new place once: agency ls --repo PATH; to give the work up: agency rm --discard %s", r.Ref())
	}
	removal.Warnings, removal.Branch = append(removal.Warnings, "repository: "+agency.AsError(err).Message), ""
	return s.Git.RemoveWorktree(ctx, agency.Repo{}, r.Worktree)
}

// removeRest removes what is left of a run that is recorded as removed: its branch, if requested,
// and what an earlier version left because it took an error for an absence.
func (s *Supervisor) removeRest(ctx context.Context, r *agency.Run, req RemoveRequest, removal *Removal) error {
	left, err := s.Git.Leftover(r.Repo, r.Worktree)
	if err != nil {
		return agency.Errorf(agency.CodeCleanupFailed, "look for the worktree of %s: %w", r.Ref(), err)
	}
	if left {
		return s.removeWorktree(ctx, r, req, removal)
	}
	unlock, err := s.Repos.lock(ctx, r.Repo.Fingerprint)
	if err != nil {
		return err
	}
	defer unlock()
	repo, err := s.Repos.of(ctx, r)
	if !req.DeleteBranch {
		switch gone := agency.IsCode(err, agency.CodeInvalidState); {
		case gone:
			removal.Branch = ""
			return nil
		case err != nil:
			return err
		}
		there, err := s.Git.HasBranch(ctx, repo, r.Branch)
		if !there && err == nil {
			removal.Branch = ""
		}
		return err
	}
	if err != nil {
		return err
	}
	if !req.Discard {
		if err := s.Work.checkSaved(ctx, r, repo); err != nil {
			return err
		}
	}
	if err := s.Git.DeleteBranch(ctx, repo, r.Branch); err != nil {
		return err
	}
	removal.Branch = ""
	return nil
}
