package supervisor

import (
	"context"
	"syscall"
	"time"

	"agency"
	"agency/internal/killpoint"
)

// stopTimeout bounds a stop beyond the grace that the wrapper itself gives the runner.
const stopTimeout = 90 * time.Second

// StopRun ends a running attempt: the intent is written first, then the wrapper ends the whole process tree, then the
// session goes. The worktree stays. It is valid only in running; a stop that is already under way is joined.
func (s *Supervisor) StopRun(ctx context.Context, ref string) (*agency.Run, error) {
	r, err := s.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	return s.stopRun(ctx, r.ID, 0, false)
}

// StopAttempt is StopRun for one attempt, 0 is whichever lives. It is E_INVALID_STATE when that has ended, whatever followed.
func (s *Supervisor) StopAttempt(ctx context.Context, id agency.RunID, number int) error {
	_, err := s.stopRun(ctx, id, number, false)
	return err
}

// stopRun stops an attempt of a run, whichever lives when number is 0. restart says that the next attempt follows, which goes
// into the record with the intent: a session waits for that attempt then.
func (s *Supervisor) stopRun(ctx context.Context, id agency.RunID, number int, restart bool) (*agency.Run, error) {
	r, err := s.Store.ChangeRun(ctx, id, func(r *agency.Run) ([]agency.News, error) {
		a := &r.Attempt
		switch {
		case number != 0 && a.Number != number:
			return nil, agency.Errorf(agency.CodeInvalidState, "attempt %d of %s has ended", number, r.Ref())
		case a.State != agency.Running:
			err := agency.Errorf(agency.CodeInvalidState, "%s is %s, and only a running run can be stopped", r.Ref(), a.State)
			if a.State.Final() && r.RemovedAt == nil {
				err = err.WithHint("to remove it: agency rm %s", r.Ref())
			}
			return nil, err
		}
		a.Restarting = a.Restarting || restart
		if a.StopRequestedAt != nil {
			return nil, nil
		}
		now := s.Now()
		a.StopRequestedAt = &now
		return []agency.News{{Type: agency.AttemptStopping}}, nil
	})
	if err != nil {
		return nil, err
	}
	killpoint.At("stop.intended")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := s.stopAndAwait(ctx, r); err != nil {
		return nil, err
	}
	return s.Store.Run(ctx, r.ID)
}

// finishStop goes on with a stop that was asked for before the daemon ended.
func (s *Supervisor) finishStop(r *agency.Run) {
	ctx, cancel := context.WithTimeout(s.ctx, stopTimeout)
	defer cancel()
	if err := s.stopAndAwait(ctx, r); err != nil && s.ctx.Err() == nil {
		s.Log.Error("finish stop", "run", r.ID, "err", err)
	}
}

// stopAndAwait ends a running attempt whose stop is in the record, and then its session.
func (s *Supervisor) stopAndAwait(ctx context.Context, r *agency.Run) error {
	if err := s.stopWrapper(ctx, r); err != nil {
		return err
	}
	killpoint.At("stop.told")
	number := r.Attempt.Number
	_, err := s.awaitState(ctx, r.ID, func(r *agency.Run) bool { return r.Attempt.Number != number || r.Attempt.State.Final() })
	if err != nil {
		return agency.Errorf(agency.CodeInternal, "%s was told to stop but lives on: %w", r.Ref(), err).WithHint("agency doctor")
	}
	killpoint.At("stop.ended")
	if err := s.endSession(ctx, r); err != nil {
		return err
	}
	killpoint.At("stop.session")
	return nil
}

// endSession ends the session of an attempt that was stopped, unless a later attempt has begun: the session has the name of the
// run, and may be that of the later one by now.
func (s *Supervisor) endSession(ctx context.Context, r *agency.Run) error {
	unlock, err := s.locks.lock(ctx, "session "+string(r.ID))
	if err != nil {
		return err
	}
	defer unlock()
	if now, err := s.Store.Run(ctx, r.ID); err != nil || now.Attempt.Number != r.Attempt.Number {
		return err
	}
	return s.killSession(ctx, r)
}

// killSession ends a run's tmux session. It is fine if there is none.
func (s *Supervisor) killSession(ctx context.Context, r *agency.Run) error {
	err := s.Tmux.Kill(ctx, r.Session())
	if agency.IsCode(err, agency.CodeTmuxSessionNotFound) || agency.IsCode(err, agency.CodeTmuxNotFound) {
		return nil
	}
	return err
}

// stopWrapper tells the wrapper to end its runner: over the link, or by a signal when there is none. A wrapper that is
// gone is settled instead.
func (s *Supervisor) stopWrapper(ctx context.Context, r *agency.Run) error {
	if r.Attempt.Wrapper != nil {
		_ = s.Attempts.Signal(*r.Attempt.Wrapper, syscall.SIGCONT) // one that somebody suspended would not hear
	}
	if link := s.linkOf(r.ID); link != nil {
		if err := link.Stop(ctx, agency.EndedByStop); err == nil {
			return nil
		}
	}
	if r.Attempt.Wrapper != nil {
		if err := s.Attempts.Signal(*r.Attempt.Wrapper, syscall.SIGTERM); err == nil {
			s.work.Go(func() { s.settleWhenDead(r.ID) })
			return nil
		}
	}
	_, err := s.settle(ctx, r)
	return err
}
