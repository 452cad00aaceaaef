package supervisor

import (
	"context"

	"agency"
	"agency/internal/killpoint"
)

// purpose is what an attempt is stopped for.
type purpose int

const (
	forPerson  purpose = iota // a person wants its end; who asks twice insists, and the rest of the grace is over
	forSession                // the scheduler of a session wants its end
	forRestart                // the next attempt follows
)

// StopRun ends a running attempt: the intent is recorded first, in memory where the disk takes
// nothing, then the wrapper ends the whole process tree, then the session goes. The worktree stays.
// It is valid only in running; a stop that is already under way is joined. Whoever calls it a
// second time for the same attempt insists: what has not ended by then is killed.
func (s *Supervisor) StopRun(ctx context.Context, ref string) (*agency.Run, error) {
	r, err := s.Records.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	return s.stopRun(ctx, r.ID, 0, forPerson)
}

// StopAttempt is StopRun for one attempt, 0 is whichever lives, and never insists. It is
// E_INVALID_STATE when that has ended, whatever followed.
func (s *Supervisor) StopAttempt(ctx context.Context, id agency.RunID, number int) error {
	_, err := s.stopRun(ctx, id, number, forSession)
	return err
}

// stopRun stops an attempt of a run, whichever lives when number is 0. That the next attempt
// follows goes into the record with the intent: a session waits for that attempt then.
func (s *Supervisor) stopRun(ctx context.Context, id agency.RunID, number int, why purpose) (*agency.Run, error) {
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
	if why == forPerson && s.askedBefore(r) && how == askAgain {
		how = askForce
	}
	ctx = context.WithoutCancel(ctx)
	if err := s.settler.stopAndAwait(ctx, r, how); err != nil {
		return nil, err
	}
	return s.Records.Run(ctx, r.ID)
}

// askedBefore notes that a person asks for the end of an attempt, and says whether one did already.
func (s *Supervisor) askedBefore(r *agency.Run) bool {
	before := false
	s.Live.change(r.ID, func(l *live) {
		if l.attempt == r.Attempt.Number {
			before, l.asked = l.asked, true
		}
	})
	return before
}
