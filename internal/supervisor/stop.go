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

// mostGrace is the longest grace that a configuration gives.
const mostGrace = time.Hour

// purpose is what an attempt is stopped for.
type purpose int

const (
	forPerson  purpose = iota // a person wants its end; who asks twice insists, and the rest of the grace is over
	forSession                // the scheduler of a session wants its end
	forRestart                // the next attempt follows
)

// urgency is how a wrapper is told to stop.
type urgency int

const (
	askFirst  urgency = iota // nobody told it
	askAgain                 // somebody may have; its runner keeps its grace
	askInsist                // the rest of the grace is over
)

// StopRun ends a running attempt: the intent is recorded first, in memory where the disk takes nothing, then the wrapper ends the whole
// process tree, then the session goes. The worktree stays. It is valid only in running; a stop that is already under way is joined. Whoever calls it a
// second time for the same attempt insists: what has not ended by then is killed.
func (s *Supervisor) StopRun(ctx context.Context, ref string) (*agency.Run, error) {
	r, err := s.Records.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	return s.stopRun(ctx, r.ID, 0, forPerson)
}

// StopAttempt is StopRun for one attempt, 0 is whichever lives, and never insists. It is E_INVALID_STATE when that has ended,
// whatever followed.
func (s *Supervisor) StopAttempt(ctx context.Context, id agency.RunID, number int) error {
	_, err := s.stopRun(ctx, id, number, forSession)
	return err
}

// stopRun stops an attempt of a run, whichever lives when number is 0. That the next attempt follows goes into the record with
// the intent: a session waits for that attempt then.
func (s *Supervisor) stopRun(ctx context.Context, id agency.RunID, number int, why purpose) (*agency.Run, error) {
	how := askFirst
	r, err := s.Records.fact(ctx, id, func(r *agency.Run) ([]agency.News, error) {
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
		a.Restarting = a.Restarting || why == forRestart
		if a.StopRequestedAt != nil {
			how = askAgain
			return nil, nil
		}
		how = askFirst
		now := s.Now()
		a.StopRequestedAt = &now
		return []agency.News{{Type: agency.AttemptStopping}}, nil
	})
	if err != nil {
		return nil, err
	}
	killpoint.At("stop.intended")
	if why == forPerson && s.askedBefore(r) && how == askAgain {
		how = askInsist
	}
	ctx = context.WithoutCancel(ctx)
	if err := s.stopAndAwait(ctx, r, how); err != nil {
		return nil, err
	}
	return s.Records.Run(ctx, r.ID)
}

// askedBefore notes that a person asks for the end of an attempt, and says whether one did already.
func (s *Supervisor) askedBefore(r *agency.Run) bool {
	l := s.watched(r)
	if l == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := l.asked
	l.asked = true
	return before
}

// graceOf is how long the agent of an attempt may take to end, as far as its wrapper has recorded it.
func (s *Supervisor) graceOf(r *agency.Run) time.Duration {
	start, err := s.Attempts.ReadStart(attemptDir(r.Dir, r.Attempt.Number))
	if err != nil || start == nil {
		return 0
	}
	return min(max(start.Grace, 0), mostGrace)
}

// finishStop goes on with a stop that was asked for before the daemon ended.
func (s *Supervisor) finishStop(r *agency.Run) {
	if err := s.stopAndAwait(s.ctx, r, askAgain); err != nil && s.ctx.Err() == nil {
		s.Log.Error("finish stop", "run", r.ID, "err", err)
	}
}

// stopAndAwait ends a running attempt whose stop is in the record, and then its session.
func (s *Supervisor) stopAndAwait(ctx context.Context, r *agency.Run, how urgency) error {
	ctx, cancel := context.WithTimeout(ctx, s.graceOf(r)+stopTimeout)
	defer cancel()
	l := s.watched(r)
	if err := s.stopWrapper(ctx, r, how); err != nil {
		return err
	}
	killpoint.At("stop.told")
	number := r.Attempt.Number
	_, err := s.awaitState(ctx, r.ID, func(r *agency.Run) bool { return r.Attempt.Number != number || r.Attempt.State.Final() })
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
func (s *Supervisor) endStopped(r *agency.Run) {
	if r.Attempt.State != agency.Killed {
		return
	}
	l := s.watched(r)
	s.work.Go(func() {
		if err := s.endSession(s.ctx, r, l); err != nil && s.ctx.Err() == nil {
			s.Log.Warn("end session", "run", r.ID, "err", err)
			s.sessionLeft.Store(true)
		}
	})
}

// endSession ends the session of an attempt that is over, unless a later attempt has begun: the session has the name of the
// run, and may be that of the later one by now. It does so once for what was known of the attempt, which may be nil: a tmux
// whose last session has just gone answers the next question in many ways.
func (s *Supervisor) endSession(ctx context.Context, r *agency.Run, known *liveRun) error {
	unlock, err := s.locks.lock(ctx, "session "+string(r.ID))
	if err != nil {
		return err
	}
	defer unlock()
	if now, err := s.Records.Run(ctx, r.ID); err != nil || now.Attempt.Number != r.Attempt.Number {
		return err
	}
	if known == nil {
		return s.killSession(ctx, r)
	}
	s.mu.Lock()
	dark := known.dark
	s.mu.Unlock()
	if dark {
		return nil
	}
	if err := s.killSession(ctx, r); err != nil {
		return err
	}
	s.mu.Lock()
	known.dark = true
	s.mu.Unlock()
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
func (s *Supervisor) stopWrapper(ctx context.Context, r *agency.Run, how urgency) error {
	if r.Attempt.Wrapper != nil {
		_ = s.Attempts.Signal(*r.Attempt.Wrapper, syscall.SIGCONT) // one that somebody suspended would not hear
	}
	if link := s.linkOf(r.ID); link != nil {
		var err error
		if how == askInsist {
			err = link.Insist(ctx)
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
		if err := s.Attempts.Signal(*r.Attempt.Wrapper, sig); err == nil {
			s.work.Go(func() { s.settleWhenDead(r.ID) })
			return nil
		}
	}
	_, err := s.settle(ctx, r)
	return err
}
