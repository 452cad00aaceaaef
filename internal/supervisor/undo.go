package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"

	"agency"
	"agency/internal/killpoint"
)

// undo undoes a creation: it removes session, processes, worktree, branch and directory, and
// records the run as failed and removed with the reason, which frees its name. A branch or
// snapshots that hold work of its agent stay, and so does the directory, which describes them. It
// can be repeated after a crash. When something cannot be undone, the run is failed and stays, so
// that rm can try again.
func (s *settler) undo(ctx context.Context, r *agency.Run, why error) error {
	unlock, err := s.lockUndo(ctx, r.ID) // both the waiting caller and the end of the wrapper request it
	if err != nil {
		return err
	}
	defer unlock()
	if now, err := s.store.Run(ctx, r.ID); err != nil || now.RemovedAt != nil || now.Attempt.Number != r.Attempt.Number {
		return err
	}
	if err := s.intendEnd(ctx, r, why); err != nil {
		return err
	}
	left, worked := s.endStart(ctx, r), false
	killpoint.At("undo.ended")
	if left == nil {
		worked, left = s.undoWorktree(ctx, r)
	}
	killpoint.At("undo.worktree")
	if left == nil && !worked {
		left = s.views.removeFiles(ctx, r)
	}
	killpoint.At("undo.files")
	reason := agency.AsError(why)
	undone, err := s.store.ChangeRun(ctx, r.ID, func(r *agency.Run) ([]agency.EventDraft, error) {
		now, a := s.now(), &r.Attempt
		ended := a.State.Final()
		if !ended {
			state, err := agency.Next(a.State, agency.Fact{Kind: agency.FactLost})
			if err != nil {
				return nil, err
			}
			a.State, a.EndedAt, a.EndedBy = state, &now, agency.EndedByStartFailed
		}
		a.ErrorCode, a.Error = reason.Code, reason.Message
		switch {
		case left == nil:
			r.RemovedAt = &now
			return []agency.EventDraft{{Type: agency.RunUndone, Data: map[string]any{"error_code": reason.Code, "error": reason.Message}}}, nil
		case ended:
			return nil, nil
		default:
			return []agency.EventDraft{endDraft(a)}, nil
		}
	})
	if err == nil {
		killpoint.At("undo.recorded")
		if link := s.live.link(r.ID); link != nil {
			_ = link.Close() // a wrapper that could not be ended connects again, is refused, and ends
		}
		s.forget(undone, r.Attempt.Number)
		s.views.showRuns(ctx, undone)
		if left != nil || worked { // otherwise they went with the folder
			s.views.write(ctx, undone)
		}
	}
	if err := errors.Join(left, err); err != nil {
		return agency.Errorf(agency.CodeCleanupFailed, "undo the creation of %s: %w", r.Ref(), err).WithHint("agency rm %s", r.Ref())
	}
	return nil
}

// lockUndo excludes the undoing of a creation.
func (s *settler) lockUndo(ctx context.Context, id agency.RunID) (unlock func(), err error) {
	return s.locks.Lock(ctx, "undo "+string(id))
}

// undoWorktree removes a worktree and a branch that hold only what agency put there. If a runner
// ran unnoticed and changed something, that is saved first; worked reports whether its branch or a
// snapshot stays. A branch that the creation did not make, because it was taken or because the user
// made it after the creation was cut off, is not touched.
func (s *settler) undoWorktree(ctx context.Context, r *agency.Run) (worked bool, err error) {
	prepared, rebuilt, err := s.prepared(ctx, r)
	if err != nil {
		return false, err
	}
	unlock, err := s.repos.Lock(ctx, r.Repo.Fingerprint)
	if err != nil {
		return false, err
	}
	defer unlock()
	repo, err := s.repos.Of(ctx, r)
	if err != nil {
		return false, err
	}
	if rebuilt {
		made, err := s.git.Made(ctx, repo, r.Worktree)
		if err != nil {
			return false, err
		}
		prepared = made
	}
	if _, err := os.Lstat(r.Worktree); !errors.Is(err, os.ErrNotExist) && prepared {
		if _, err := s.work.saveDirty(ctx, r, repo, "before its creation was undone"); err != nil {
			return false, err
		}
	}
	if err := s.git.RemoveWorktree(ctx, repo, r.Worktree); err != nil {
		return false, err
	}
	if worked, err = s.git.UndoBranch(ctx, repo, r.Worktree, r.Branch, r.Commit); worked || err != nil {
		return worked, err
	}
	snapshots, err := s.git.Snapshots(ctx, repo, r.ID)
	return len(snapshots) > 0, err
}

// abort fails an attempt, and returns why. What cannot be recorded now, for example because the
// disk is full, is retried until it can.
func (s *settler) abort(ctx context.Context, r *agency.Run, why error) error {
	err := s.fail(ctx, r, why)
	if err != nil {
		s.life.Go(func() { s.settleWhenDead(r.ID, soon) })
	}
	return leave(r, why, err)
}

// fail settles an attempt that did not get as far as a runner, a later one or one whose setup
// failed. The worktree and the branch stay.
func (s *settler) fail(ctx context.Context, r *agency.Run, why error) error {
	if err := s.intendEnd(ctx, r, why); err != nil {
		return err
	}
	if err := s.endStart(ctx, r); err != nil {
		return err
	}
	killpoint.At("fail.ended")
	reason := agency.AsError(why)
	failed, changed, err := s.recordLost(ctx, r, func(a *agency.Attempt, _ agency.State) {
		a.EndedBy, a.ErrorCode, a.Error = agency.EndedByStartFailed, reason.Code, reason.Message
		if reason.Code == agency.CodeSetupFailed {
			a.EndedBy, a.ConversationID = agency.EndedBySetupFailed, "" // the conversation never began
		}
	})
	if err != nil {
		return fmt.Errorf("record the failed start of %s: %w", r.Ref(), err)
	}
	killpoint.At("fail.recorded")
	if changed {
		s.views.write(ctx, failed)
	}
	s.forget(failed, r.Attempt.Number)
	return nil
}
