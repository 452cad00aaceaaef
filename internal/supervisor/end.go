package supervisor

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"agency"
	"agency/internal/killpoint"
	"agency/internal/supervisor/observe"
)

// endStart ends what a start left behind that did not get as far as a runner in the record: launch file, session, wrapper,
// and processes of the runner or of git that nobody waits for any more. When it returns nil nothing of the attempt runs, and
// nothing will.
func (s *settler) endStart(ctx context.Context, r *agency.Run) error {
	if err := removeLaunch(r); err != nil {
		return err
	}
	if err := s.endSession(ctx, r, nil); err != nil {
		return err
	}
	// A wrapper that was faster is told by the end of its session, and takes its runner along, which has its grace.
	if err := s.awaitRelease(ctx, r, s.graceOf(r)+releaseTimeout); err != nil {
		return err
	}
	for _, left := range [][]string{agency.AttemptMark(r.ID, r.Attempt.Number), {makingMark(r)}} {
		if err := s.endLeftovers(ctx, r, agency.Process{}, agency.Process{}, left); err != nil {
			return err
		}
	}
	return nil
}

// graceOf is how long the agent of an attempt may take to end, as far as its wrapper has recorded it.
func (s *settler) graceOf(r *agency.Run) time.Duration {
	start, err := s.attempts.ReadStart(observe.AttemptDir(r.Dir, r.Attempt.Number))
	if err != nil || start == nil {
		return 0
	}
	return min(max(start.Grace, 0), mostGrace)
}

// finishStop goes on with a stop that was asked for before the daemon ended.
func (s *settler) finishStop(r *agency.Run) {
	if err := s.stopAndAwait(s.life.ctx, r, askAgain); err != nil && s.life.ctx.Err() == nil {
		s.log.Error("finish stop", "run", r.ID, "err", err)
	}
}

// stopAndAwait ends a running attempt whose stop is in the record, and then its session.
func (s *settler) stopAndAwait(ctx context.Context, r *agency.Run, how urgency) error {
	ctx, cancel := context.WithTimeout(ctx, s.graceOf(r)+stopTimeout)
	defer cancel()
	l := s.live.watched(r)
	if err := s.stopWrapper(ctx, r, how); err != nil {
		return err
	}
	killpoint.At("stop.told")
	number := r.Attempt.Number
	_, err := s.live.awaitState(ctx, r.ID, func(r *agency.Run) bool { return r.Attempt.Number != number || r.Attempt.State.Final() })
	if err != nil {
		return agency.Errorf(agency.CodeCleanupFailed, "%s was told to stop but lives on: %w", r.Ref(), err).WithHint("agency doctor")
	}
	killpoint.At("stop.ended")
	if err := s.endSession(ctx, r, l); err != nil {
		return err
	}
	killpoint.At("stop.session")
	return nil
}

// endStopped ends the session of an attempt that the record has as stopped. Whoever asked for the stop does so too, but may
// have given up, or be gone with an earlier daemon.
func (s *settler) endStopped(r *agency.Run) {
	if r.Attempt.State != agency.Killed {
		return
	}
	l := s.live.watched(r)
	s.life.work.Go(func() {
		if err := s.endSession(s.life.ctx, r, l); err != nil && s.life.ctx.Err() == nil {
			s.log.Warn("end session", "run", r.ID, "err", err)
			s.sessionLeft.Store(true)
		}
	})
}

// endSession ends the session of an attempt that is over, unless a later attempt has begun: the session has the name of the
// run, and may be that of the later one by now. It does so once for what was known of the attempt, which may be nil: a tmux
// whose last session has just gone answers the next question in many ways.
func (s *settler) endSession(ctx context.Context, r *agency.Run, known *live) error {
	unlock, err := s.locks.Lock(ctx, "session "+string(r.ID))
	if err != nil {
		return err
	}
	defer unlock()
	if now, err := s.store.Run(ctx, r.ID); err != nil || now.Attempt.Number != r.Attempt.Number {
		return err
	}
	if known == nil {
		return s.killSession(ctx, r)
	}
	if s.live.isDark(known) {
		return nil
	}
	if err := s.killSession(ctx, r); err != nil {
		return err
	}
	s.live.setDark(known)
	return nil
}

// killSession ends a run's tmux session. It is fine if there is none.
func (s *settler) killSession(ctx context.Context, r *agency.Run) error {
	err := s.tmux.Kill(ctx, r.Session())
	if agency.IsCode(err, agency.CodeTmuxSessionNotFound) || agency.IsCode(err, agency.CodeTmuxNotFound) {
		return nil
	}
	return err
}

// stopWrapper tells the wrapper to end its runner: over the link, or by a signal when there is none. A wrapper that is
// gone is settled instead.
func (s *settler) stopWrapper(ctx context.Context, r *agency.Run, how urgency) error {
	if r.Attempt.Wrapper != nil {
		_ = s.attempts.Signal(*r.Attempt.Wrapper, syscall.SIGCONT) // one that somebody suspended would not hear
	}
	if link := s.live.link(r.ID); link != nil {
		var err error
		if how == askForce {
			err = link.Force(ctx)
		} else {
			err = link.Stop(ctx, agency.EndedByStop)
		}
		if err == nil {
			return nil
		}
		how = max(how, askAgain) // it may have heard
	}
	if r.Attempt.Wrapper != nil {
		sig := syscall.SIGTERM
		if how == askAgain {
			sig = syscall.SIGHUP // it stops what runs too, and unlike a second TERM it takes nothing from the grace
		}
		if err := s.attempts.Signal(*r.Attempt.Wrapper, sig); err == nil {
			s.life.work.Go(func() { s.settleWhenDead(r.ID) })
			return nil
		}
	}
	_, err := s.settle(ctx, r)
	return err
}

// awaitRelease waits until the wrapper of an ended attempt is gone: it may still be ending what the runner left behind, and
// that could still write to the worktree.
func (s *settler) awaitRelease(ctx context.Context, r *agency.Run, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		locked, err := s.attempts.Locked(observe.AttemptDir(r.Dir, r.Attempt.Number))
		if err != nil {
			return fmt.Errorf("look at the lock of %s: %w", r.Ref(), err)
		}
		if !locked {
			return nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return agency.Errorf(agency.CodeCleanupFailed, "the wrapper of %s is still ending what the agent left behind", r.Ref()).
				WithHint("try again in a moment")
		}
	}
}

// urgency is how a wrapper is told to stop.
type urgency int

const (
	askFirst urgency = iota // nobody told it
	askAgain                // somebody may have; its runner keeps its grace
	askForce                // the rest of the grace is over
)

// stopTimeout bounds a stop beyond the grace that the wrapper itself gives the runner.
const stopTimeout = 90 * time.Second

// mostGrace is the longest grace that a configuration gives.
const mostGrace = time.Hour

// releaseTimeout bounds the wait for a wrapper that has recorded its runner's end.
const releaseTimeout = 15 * time.Second
