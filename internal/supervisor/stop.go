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
	return s.stopRun(ctx, ref, false)
}

// stopRun is StopRun. restart says that the next attempt follows, which goes into the record with the intent: a session waits for
// that attempt then.
func (s *Supervisor) stopRun(ctx context.Context, ref string, restart bool) (*agency.Run, error) {
	r, err := s.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	r, err = s.Store.ChangeRun(ctx, r.ID, func(r *agency.Run) ([]agency.News, error) {
		a := &r.Attempt
		if a.State != agency.Running {
			return nil, agency.Errorf(agency.CodeInvalidState, "%s is %s, and only a running run can be stopped", r.Ref(), a.State)
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
	_, err := s.awaitState(ctx, r.ID, func(r *agency.Run) bool { return r.Attempt.State.Final() })
	if err != nil {
		return agency.Errorf(agency.CodeInternal, "%s was told to stop but lives on: %w", r.Ref(), err).WithHint("agency doctor")
	}
	killpoint.At("stop.ended")
	if err := s.killSession(ctx, r); err != nil {
		return err
	}
	killpoint.At("stop.session")
	return nil
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
