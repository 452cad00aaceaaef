package supervisor

import (
	"context"
	"crypto/subtle"
	"errors"

	"agency"
	"agency/internal/supervisor/observe"
)

// Connect accepts a wrapper's introduction. A wrapper of an older attempt, of a final one, or with
// another token is refused with E_PERMISSION_DENIED ("fenced"): it must not speak for the run.
// After other errors it may try again. An earlier link of the same attempt is closed. The caller
// passes every update to Update and the end of the connection to Disconnect.
func (s *Supervisor) Connect(ctx context.Context, hello agency.WrapperHello, link Link) error {
	r, err := s.Records.Run(ctx, hello.RunID)
	if err != nil {
		return err
	}
	hash, err := s.Records.TokenHash(ctx, hello.RunID, hello.Attempt)
	if err != nil {
		return err
	}
	if subtle.ConstantTimeCompare([]byte(hash), []byte(agency.TokenHash(hello.Token))) != 1 || hello.Attempt != r.Attempt.Number {
		return agency.Errorf(agency.CodePermissionDenied, "attempt %d of %s is not the one that runs", hello.Attempt, r.Ref())
	}
	if r.Attempt.State.Final() {
		return refusal(r, hello.Attempt)
	}
	if r.Attempt.State == agency.Running {
		// Before anything changes here: when it fails, the wrapper tries again.
		_, err := s.Records.fact(ctx, r.ID, func(r *agency.Run) ([]agency.EventDraft, error) {
			if r.Attempt.Number != hello.Attempt || r.Attempt.State.Final() {
				return nil, refusal(r, hello.Attempt)
			}
			return []agency.EventDraft{{Type: agency.WrapperAdopted}}, nil
		})
		if err != nil {
			return err
		}
	}
	s.Observer.Track(r)
	old, ok := s.Live.connect(ctx, r, &hello, link)
	if !ok {
		return refusal(r, hello.Attempt)
	}
	s.Observer.SetSeen(r.ID)
	if old != nil {
		_ = old.Close()
	}
	if r.Attempt.State == agency.Running {
		s.Observer.WatchAgent(r)
	}
	// If the end was recorded before the attempt was tracked here, nothing else will forget it.
	switch now, err := s.Records.Run(ctx, r.ID); {
	case err != nil:
		s.Disconnect(r.ID, hello.Attempt, link)
		return err
	case now.Attempt.Number != hello.Attempt || now.Attempt.State.Final():
		s.settler.forget(now, hello.Attempt)
		return refusal(now, hello.Attempt)
	case r.Attempt.State == agency.Running && r.Attempt.StopRequestedAt != nil:
		s.life.Go(func() { s.settler.finishStop(r) })
	default:
		s.allowAgain(now, link)
	}
	return nil
}

// refusal is the error for a wrapper of an attempt that is over. A wrapper whose end is in memory
// only may connect again.
func refusal(r *agency.Run, attempt int) error {
	if r.Unrecorded && r.Attempt.Number == attempt && r.Attempt.State.Final() {
		return errUnrecorded(r)
	}
	return agency.Errorf(agency.CodePermissionDenied, "attempt %d of %s has ended", attempt, r.Ref())
}

// Update records what a connected wrapper reports. When it returns nil, the update is in the
// record, or it is in memory and the wrapper's own record, which the next daemon reads, is on the
// disk.
func (s *Supervisor) Update(ctx context.Context, id agency.RunID, attempt int, u agency.WrapperUpdate) error {
	if u.Output != nil {
		s.Observer.Printed(id, attempt, &u)
	}
	if len(u.Spans) > 0 {
		s.Live.change(id, func(l *live) { l.spans = u.Spans })
	}
	if u.Network != nil {
		if err := s.settler.recordNetwork(ctx, id, attempt, u.Network); err != nil {
			return err
		}
	}
	if u.Limits != nil {
		if err := s.settler.recordLimits(ctx, id, attempt, u.Limits); err != nil {
			return err
		}
	}
	if u.Start == nil && u.Exit == nil {
		return nil
	}
	if err := s.settler.record(ctx, id, attempt, u.Start, u.Exit); err != nil {
		return err
	}
	if u.Exit != nil {
		if err := s.keptOnDisk(ctx, id, attempt); err != nil {
			return err
		}
	}
	if u.Exit != nil && u.Exit.EndedBy == agency.EndedByStartFailed && attempt == 1 {
		// Not in this goroutine: an undo waits for the wrapper's end, and the wrapper for its
		// answer.
		s.life.Go(func() {
			if err := s.settler.undoUnstarted(s.life.ctx, id); err != nil && s.life.ctx.Err() == nil {
				s.Log.Error("undo creation", "run", id, "err", err)
			}
		})
	}
	return nil
}

// keptOnDisk fails when the end of an attempt is in memory only: its wrapper keeps its exit until
// the disk has it.
func (s *Supervisor) keptOnDisk(ctx context.Context, id agency.RunID, attempt int) error {
	r, err := s.Records.Run(ctx, id)
	if err != nil || !r.Unrecorded {
		return err
	}
	if exit, err := s.Attempts.ReadExit(observe.AttemptDir(r.Dir, attempt)); err != nil || exit == nil {
		return errors.Join(errUnrecorded(r), err)
	}
	return nil
}

func errUnrecorded(r *agency.Run) error {
	return agency.Errorf(agency.CodeDBError, "attempt %d of %s has ended, and the disk has no room for that", r.Attempt.Number, r.Ref())
}

// Disconnect handles the end of a wrapper's connection. A wrapper that ended with it is settled
// now; a live one connects again by itself.
func (s *Supervisor) Disconnect(id agency.RunID, attempt int, link Link) {
	if mine := s.Live.disconnect(id, attempt, link); !mine || s.life.ctx.Err() != nil {
		return
	}
	s.life.Go(func() { s.settler.settleWhenDead(id, soon) })
}
