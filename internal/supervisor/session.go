package supervisor

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"

	"agency"
	"agency/internal/supervisor/keyed"
)

// sessionEnder decides which tmux sessions have to end, and ends them: those of runs that were
// stopped, removed or taken back. The session of an agent that ended by itself stays, with its last
// screen.
type sessionEnder struct {
	store *Records
	live  *Live
	tmux  Tmux
	log   *slog.Logger
	life  *life

	locks keyed.Locks // of a run's session
	left  atomic.Bool // a session that has to end could not be ended
}

// afterStop ends the session of an attempt that is recorded as stopped. The caller of the stop
// does so too, but may have given up, or may have ended with an earlier daemon.
func (e *sessionEnder) afterStop(r *agency.Run) {
	if r.Attempt.State != agency.Killed {
		return
	}
	l := e.live.watched(r)
	e.life.Go(func() {
		if err := e.end(e.life.ctx, r, l); err != nil && e.life.ctx.Err() == nil {
			e.log.Warn("end session", "run", r.ID, "err", err)
			e.left.Store(true)
		}
	})
}

// end ends the session of an attempt that is over, unless a later attempt has begun: the
// session is named after the run and may belong to the later attempt. It does so once per known,
// which may be nil: a tmux server whose last session has just ended answers the next command in
// many ways.
func (e *sessionEnder) end(ctx context.Context, r *agency.Run, known *live) error {
	unlock, err := e.locks.Lock(ctx, string(r.ID))
	if err != nil {
		return err
	}
	defer unlock()
	if now, err := e.store.Run(ctx, r.ID); err != nil || now.Attempt.Number != r.Attempt.Number {
		return err
	}
	if known == nil {
		return e.kill(ctx, r)
	}
	if e.live.hasEndedSession(known) {
		return nil
	}
	if err := e.kill(ctx, r); err != nil {
		return err
	}
	e.live.setSessionEnded(known)
	return nil
}

// kill ends a run's tmux session. A missing session is not an error.
func (e *sessionEnder) kill(ctx context.Context, r *agency.Run) error {
	err := e.tmux.Kill(ctx, r.Session())
	if agency.IsCode(err, agency.CodeTmuxSessionNotFound) || agency.IsCode(err, agency.CodeTmuxNotFound) {
		return nil
	}
	return err
}

// retry ends the sessions that could not be ended before, if there are any.
func (e *sessionEnder) retry(ctx context.Context) error {
	if !e.left.Swap(false) {
		return nil
	}
	return e.endLeft(ctx)
}

// endLeft ends the sessions of killed and removed runs that a stop or a removal could not end,
// because the daemon died or tmux failed. All other sessions stay.
func (e *sessionEnder) endLeft(ctx context.Context) error {
	sessions, err := e.tmux.Sessions(ctx)
	if err != nil {
		e.log.Warn("list sessions", "err", err) // without tmux there are none
		e.left.Store(true)
		return nil
	}
	for _, name := range sessions {
		r, err := e.store.Run(ctx, agency.RunID(strings.TrimPrefix(name, agency.SessionPrefix)))
		switch {
		case agency.IsCode(err, agency.CodeRunNotFound):
			continue // not one of agency's; doctor reports it
		case err != nil:
			return fmt.Errorf("read the run of session %s: %w", name, err)
		}
		if r.RemovedAt != nil || r.Attempt.State == agency.Killed {
			if err := e.end(ctx, r, nil); err != nil {
				e.log.Warn("end session", "run", r.ID, "err", err)
				e.left.Store(true)
			}
		}
	}
	return nil
}
