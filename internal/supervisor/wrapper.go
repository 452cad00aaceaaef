package supervisor

import (
	"context"
	"crypto/subtle"
	"errors"
	"log/slog"

	"agency"
	"agency/internal/supervisor/observe"
)

// Wrappers receives what connected wrappers report. It decides which of them may report for a run, and
// records their reports.
type Wrappers struct {
	store    *Records
	live     *Live
	observer *observe.Observer
	settler  *settler
	attempts Attempts
	log      *slog.Logger
	life     *life
}

// Connect accepts a wrapper's introduction. A wrapper of an older attempt, of a final one, or with
// another token is refused with E_PERMISSION_DENIED ("fenced"): it must not speak for the run.
// After other errors it may try again. An earlier link of the same attempt is closed. The caller
// passes every update to Update and the end of the connection to Disconnect.
func (w *Wrappers) Connect(ctx context.Context, hello agency.WrapperHello, link Link) error {
	r, err := w.store.Run(ctx, hello.RunID)
	if err != nil {
		return err
	}
	hash, err := w.store.TokenHash(ctx, hello.RunID, hello.Attempt)
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
		_, err := w.store.fact(ctx, r.ID, func(r *agency.Run) ([]agency.EventDraft, error) {
			if r.Attempt.Number != hello.Attempt || r.Attempt.State.Final() {
				return nil, refusal(r, hello.Attempt)
			}
			return []agency.EventDraft{{Type: agency.WrapperAdopted}}, nil
		})
		if err != nil {
			return err
		}
	}
	w.observer.Track(r)
	old, ok := w.live.connect(ctx, r, &hello, link)
	if !ok {
		return refusal(r, hello.Attempt)
	}
	w.observer.SetSeen(r.ID)
	if old != nil {
		_ = old.Close()
	}
	if r.Attempt.State == agency.Running {
		w.observer.WatchAgent(r)
	}
	// If the end was recorded before the attempt was tracked here, nothing else will forget it.
	switch now, err := w.store.Run(ctx, r.ID); {
	case err != nil:
		w.Disconnect(r.ID, hello.Attempt, link)
		return err
	case now.Attempt.Number != hello.Attempt || now.Attempt.State.Final():
		w.settler.forget(now, hello.Attempt)
		return refusal(now, hello.Attempt)
	case now.Attempt.State == agency.Running && now.Attempt.StopRequestedAt != nil:
		// Also of a stop that was requested since r was read: it found no link.
		w.life.Go(func() { w.settler.finishStop(now) })
	default:
		w.allowAgain(now, link)
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
func (w *Wrappers) Update(ctx context.Context, id agency.RunID, attempt int, u agency.WrapperUpdate) error {
	if u.Output != nil {
		w.observer.Printed(id, attempt, &u)
	}
	if len(u.Spans) > 0 {
		w.live.change(id, func(l *live) { l.spans = u.Spans })
	}
	if u.Network != nil {
		if err := w.settler.recordNetwork(ctx, id, attempt, u.Network); err != nil {
			return err
		}
	}
	if u.Limits != nil {
		if err := w.settler.recordLimits(ctx, id, attempt, u.Limits); err != nil {
			return err
		}
	}
	if u.Start == nil && u.Exit == nil {
		return nil
	}
	if err := w.settler.record(ctx, id, attempt, u.Start, u.Exit); err != nil {
		return err
	}
	if u.Exit != nil {
		if err := w.keptOnDisk(ctx, id, attempt); err != nil {
			return err
		}
	}
	if u.Exit != nil && u.Exit.EndedBy == agency.EndedByStartFailed && attempt == 1 {
		// Not in this goroutine: an undo waits for the wrapper's end, and the wrapper for its
		// answer.
		w.life.Go(func() {
			if err := w.settler.undoUnstarted(w.life.ctx, id); err != nil && w.life.ctx.Err() == nil {
				w.log.Error("undo creation", "run", id, "err", err)
			}
		})
	}
	return nil
}

// keptOnDisk fails when the end of an attempt is in memory only: its wrapper keeps its exit until
// the disk has it.
func (w *Wrappers) keptOnDisk(ctx context.Context, id agency.RunID, attempt int) error {
	r, err := w.store.Run(ctx, id)
	if err != nil || !r.Unrecorded {
		return err
	}
	if exit, err := w.attempts.ReadExit(observe.AttemptDir(r.Dir, attempt)); err != nil || exit == nil {
		return errors.Join(errUnrecorded(r), err)
	}
	return nil
}

func errUnrecorded(r *agency.Run) error {
	return agency.Errorf(agency.CodeDBError, "attempt %d of %s has ended, and the disk has no room for that", r.Attempt.Number, r.Ref())
}

// Disconnect handles the end of a wrapper's connection. A wrapper that ended with it is settled
// now; a live one connects again by itself.
func (w *Wrappers) Disconnect(id agency.RunID, attempt int, link Link) {
	if mine := w.live.disconnect(id, attempt, link); !mine || w.life.ctx.Err() != nil {
		return
	}
	w.life.Go(func() { w.settler.settleWhenDead(id, soon) })
}

// allowAgain gives a wrapper that has connected the hosts that its run was granted.
func (w *Wrappers) allowAgain(r *agency.Run, link Link) {
	entries := agency.Entries(r.Attempt.Network.Grants(false))
	if len(entries) == 0 {
		return
	}
	w.life.Go(func() {
		ctx, cancel := context.WithTimeout(w.life.ctx, allowTime)
		defer cancel()
		if err := link.Allow(ctx, entries); err != nil && ctx.Err() == nil {
			w.log.Warn("allow hosts again", "run", r.ID, "err", err)
		}
	})
}
