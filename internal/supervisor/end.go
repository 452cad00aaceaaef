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

// endStart ends what is left of a start that has no runner in the record: launch file, session,
// wrapper, and abandoned processes of the runner or of git. When it returns nil, nothing of the
// attempt runs or will run.
func (s *settler) endStart(ctx context.Context, r *agency.Run) error {
	if err := removeLaunch(r); err != nil {
		return err
	}
	if err := s.sessions.end(ctx, r, nil); err != nil {
		return err
	}
	// A wrapper that did start notices the end of its session and stops its runner, within the
	// grace.
	if err := s.awaitRelease(ctx, r, s.graceOf(r)+releaseTimeout); err != nil {
		return err
	}
	for _, left := range [][]string{agency.AttemptMark(r.ID, r.Attempt.Number), {makingMark(r.Worktree)}} {
		if err := s.endLeftovers(ctx, r, agency.Process{}, agency.Process{}, left); err != nil {
			return err
		}
	}
	return s.containers.remove(ctx, r)
}

// graceOf returns how long the agent of an attempt may take to end, as far as its wrapper has
// recorded it.
func (s *settler) graceOf(r *agency.Run) time.Duration {
	start, err := s.attempts.ReadStart(observe.AttemptDir(r.Dir, r.Attempt.Number))
	if err != nil || start == nil {
		return 0
	}
	return min(max(start.Grace, 0), mostGrace)
}

// finishStop continues a stop that was requested before the daemon ended.
func (s *settler) finishStop(r *agency.Run) {
	if err := s.stopAndAwait(s.life.ctx, r, askAgain); err != nil && s.life.ctx.Err() == nil {
		s.log.Error("finish stop", "run", r.ID, "err", err)
	}
}

// stopAndAwait ends a running attempt whose stop is recorded, and then its session.
func (s *settler) stopAndAwait(ctx context.Context, r *agency.Run, how urgency) error {
	ctx, cancel := context.WithTimeout(ctx, s.graceOf(r)+stopTimeout)
	defer cancel()
	l := s.live.watched(r)
	if err := s.stopWrapper(ctx, r, how); err != nil {
		return err
	}
	killpoint.At("stop.delivered")
	number := r.Attempt.Number
	_, err := s.live.awaitState(ctx, r.ID, func(r *agency.Run) bool { return r.Attempt.Number != number || r.Attempt.State.Final() })
	if err != nil {
		return agency.Errorf(agency.CodeCleanupFailed, "%s was asked to stop but is still alive: %w", r.Ref(), err).WithHint("agency doctor")
	}
	killpoint.At("stop.ended")
	if err := s.sessions.end(ctx, r, l); err != nil {
		return err
	}
	killpoint.At("stop.session")
	return nil
}

// stopWrapper tells the wrapper to end its runner: over the link, or with a signal when there is no
// link. It settles the run if the wrapper is gone.
func (s *settler) stopWrapper(ctx context.Context, r *agency.Run, how urgency) error {
	if r.Attempt.Wrapper != nil {
		_ = s.attempts.Signal(*r.Attempt.Wrapper, syscall.SIGCONT) // a suspended wrapper would not react
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
		how = max(how, askAgain) // the wrapper may have received it
	}
	if r.Attempt.Wrapper != nil {
		sig := syscall.SIGTERM
		if how == askAgain {
			sig = syscall.SIGHUP // stops the runner as TERM does, but a second one does not shorten the grace
		}
		if err := s.attempts.Signal(*r.Attempt.Wrapper, sig); err == nil {
			s.life.Go(func() { s.settleWhenDead(r.ID, soon) })
			return nil
		}
	}
	_, err := s.settle(ctx, r)
	return err
}

// awaitRelease waits until the wrapper of an ended attempt is gone. The wrapper may still be ending
// processes that the runner left behind, which could write to the worktree.
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

// urgency is how strongly a wrapper is asked to stop.
type urgency int

const (
	askFirst urgency = iota // the wrapper was not asked yet
	askAgain                // the wrapper may have been asked; its runner keeps its grace
	askForce                // ends the rest of the grace
)

// stopTimeout bounds a stop, on top of the grace that the wrapper gives the runner.
const stopTimeout = 90 * time.Second

// mostGrace is the longest grace that a configuration can set.
const mostGrace = time.Hour

// releaseTimeout bounds the wait for a wrapper that has recorded the end of its runner.
const releaseTimeout = 15 * time.Second
