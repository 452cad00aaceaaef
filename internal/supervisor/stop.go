package supervisor

import (
	"context"

	"agency"
	"agency/internal/killpoint"
)

// purpose is why an attempt is stopped.
type purpose int

const (
	forUser    purpose = iota // a user wants it to end; a second request ends the rest of the grace
	forSession                // the scheduler of a session wants it to end
	forRestart                // the next attempt follows
)

// StopRun ends a running attempt: first it records the intent, in memory if the disk is full, then
// the wrapper ends the whole process tree, then the session ends. The worktree stays. The run must
// be running; a stop that is under way is joined. A second call for the same attempt forces the
// end: what has not ended by then is killed.
func (s *Supervisor) StopRun(ctx context.Context, ref string) (*agency.Run, error) {
	r, err := s.Records.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	return s.stopRun(ctx, r.ID, 0, forUser)
}

// StopAttempt is StopRun for one attempt, 0 being the live one, and never forces the end. The error
// is E_INVALID_STATE when that attempt has ended, even if another one followed.
func (s *Supervisor) StopAttempt(ctx context.Context, id agency.RunID, number int) error {
	_, err := s.stopRun(ctx, id, number, forSession)
	return err
}

// stopRun stops an attempt of a run, the live one when number is 0. With the intent it records
// whether another attempt follows: a session then waits for that attempt.
func (s *Supervisor) stopRun(ctx context.Context, id agency.RunID, number int, why purpose) (*agency.Run, error) {
	return s.stopRunIf(ctx, id, number, why, func(*agency.Run) error { return nil })
}

// stopRunIf is stopRun for an attempt that may still be stopped when the intent is recorded.
func (s *Supervisor) stopRunIf(ctx context.Context, id agency.RunID, number int, why purpose, may func(*agency.Run) error) (*agency.Run, error) {
	how := askFirst
	r, err := s.Records.fact(ctx, id, func(r *agency.Run) ([]agency.EventDraft, error) {
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
		if err := may(r); err != nil {
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
		return []agency.EventDraft{{Type: agency.AttemptStopping}}, nil
	})
	if err != nil {
		return nil, err
	}
	killpoint.At("stop.intended")
	if why == forUser && s.askedBefore(r) && how == askAgain {
		how = askForce
	}
	ctx = context.WithoutCancel(ctx)
	if err := s.settler.stopAndAwait(ctx, r, how); err != nil {
		return nil, err
	}
	return s.Records.Run(ctx, r.ID)
}

// askedBefore records that a user asked to end an attempt, and reports whether a user had already.
func (s *Supervisor) askedBefore(r *agency.Run) bool {
	before := false
	s.Live.change(r.ID, func(l *live) {
		if l.attempt == r.Attempt.Number {
			before, l.asked = l.asked, true
		}
	})
	return before
}
