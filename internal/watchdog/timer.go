package watchdog

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"agency"
	"agency/internal/service"
)

// sendTimeout limits how long typing one message of a timer may take.
const sendTimeout = 30 * time.Second

// restartTimeout is how long after the end of an attempt in a restart the next attempt may be
// missing while no restart continues, such as after a crash of the daemon.
const restartTimeout = 30 * time.Second

// maxWait is the longest time that a timer waits before it looks at the clock again: a wait does not
// count the time for which the machine sleeps or by which the clock is set forward.
const maxWait = time.Minute

// Targets is what timers need from the engine.
type Targets interface {
	Worker(ctx context.Context, id agency.RunID) (*Worker, error)
	// Restarting reports whether the restart for which the newest attempt of a run was stopped
	// continues, or has begun the next attempt.
	Restarting(ctx context.Context, id agency.RunID) (bool, error)
	// Send types a text into a run's agent. While a user is typing there, the error is
	// agency.CodeInputRefused.
	Send(ctx context.Context, id agency.RunID, text string) error
}

// TimerStore stores timers. Each writing method is one transaction together with its event.
type TimerStore interface {
	Timers(ctx context.Context) ([]agency.Timer, error)
	// PutTimer adds a timer, replaces the one with its name, and fills in its Seq. The name of an
	// active timer of another owner is agency.CodeNameExists, except for the user.
	PutTimer(ctx context.Context, t *agency.Timer) (replaced bool, err error)
	// ChangeTimer changes a timer; found is false when it is gone or another one has its name.
	ChangeTimer(ctx context.Context, seq int64, change func(t *agency.Timer)) (found bool, err error)
	DeleteTimer(ctx context.Context, t *agency.Timer) error
}

// Timers write to idle runs repeatedly. Only one may exist for a data root at a time.
type Timers struct {
	Targets Targets
	Store   TimerStore
	Log     *slog.Logger
	Now     func() time.Time // never runs backwards

	work service.Background

	mu      sync.Mutex      // held while the store and running change together
	ctx     context.Context // cancelled by Stop
	running map[string]context.CancelFunc
}

// NewTimers returns timers that do nothing until Start.
func NewTimers(targets Targets, store TimerStore, log *slog.Logger, now func() time.Time) *Timers {
	return &Timers{Targets: targets, Store: store, Log: log, Now: now, running: map[string]context.CancelFunc{}}
}

// Start runs the timers of the store until Stop. One that became due meanwhile ticks once, now.
func (ts *Timers) Start(ctx context.Context) error { return ts.work.Start(ctx, ts.begin) }

func (ts *Timers) begin(ctx context.Context) error {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.ctx = ctx
	timers, err := ts.Store.Timers(ctx)
	if err != nil {
		return fmt.Errorf("start the timers: %w", err)
	}
	for i := range timers {
		if timers[i].StoppedAt == nil {
			ts.launch(timers[i])
		}
	}
	return nil
}

// Stop ends the ticking and waits for it; the timers stay in the store. It is idempotent.
func (ts *Timers) Stop() { ts.work.Stop() }

// Set starts a timer and replaces the one with its name. Its first tick comes after one interval.
func (ts *Timers) Set(ctx context.Context, t *agency.Timer) (replaced bool, err error) {
	if err := t.Validate(); err != nil {
		return false, err
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t.StartedAt = ts.Now()
	t.NextAt = t.StartedAt.Add(t.Interval)
	if replaced, err = ts.Store.PutTimer(ctx, t); err != nil {
		return false, err
	}
	ts.halt(t.Name)
	ts.launch(*t)
	return replaced, nil
}

// End removes the unwanted timers and returns their names.
func (ts *Timers) End(ctx context.Context, unwanted func(*agency.Timer) bool) ([]string, error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	timers, err := ts.Store.Timers(ctx)
	if err != nil {
		return nil, err
	}
	ended := []string{}
	for i := range timers {
		t := &timers[i]
		if !unwanted(t) {
			continue
		}
		if err := ts.Store.DeleteTimer(ctx, t); err != nil {
			return ended, err
		}
		ts.halt(t.Name)
		ended = append(ended, t.Name)
	}
	return ended, nil
}

// launch starts the ticking of a timer; the caller holds the lock.
func (ts *Timers) launch(t agency.Timer) {
	ctx, cancel := context.WithCancel(ts.ctx)
	ts.running[t.Name] = cancel
	ts.work.Go(func() {
		defer cancel()
		ts.run(ctx, &t)
	})
}

// halt ends the ticking of a timer; the caller holds the lock.
func (ts *Timers) halt(name string) {
	if cancel := ts.running[name]; cancel != nil {
		cancel()
		delete(ts.running, name)
	}
}

// run ticks until the timer ends. Ticks that were missed because the machine slept count as one.
func (ts *Timers) run(ctx context.Context, t *agency.Timer) {
	for {
		now := ts.Now()
		if latest := now.Add(t.Interval); t.NextAt.After(latest) {
			t.NextAt = latest // the clock was ahead when this was written
		}
		if wait := t.NextAt.Sub(now); wait > 0 {
			timer := time.NewTimer(min(wait, maxWait))
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return
			}
			continue
		}
		if !ts.tick(ctx, t) {
			return
		}
	}
}

// The outcomes of a tick.
type outcome int

const (
	sent outcome = iota
	skipped
	failed
	over
)

// tick writes the message if the run is idle, and records the outcome. It returns false when the
// timer is over.
func (ts *Timers) tick(ctx context.Context, t *agency.Timer) bool {
	now := ts.Now()
	t.NextAt = now.Add(t.Interval)
	how, text := ts.write(ctx, t)
	// Even when the daemon is ending, a typed message must be recorded.
	found, err := ts.Store.ChangeTimer(context.WithoutCancel(ctx), t.Seq, func(stored *agency.Timer) {
		stored.NextAt = t.NextAt
		if how == over {
			stored.StoppedAt, stored.StopReason = &now, text
			return
		}
		stored.TickedAt, stored.Outcome = &now, text
		stored.Ticks++
		switch how {
		case sent:
			stored.Sent++
		case skipped:
			stored.Skipped++
		case failed, over:
			stored.Failed++
		}
	})
	if err != nil {
		ts.Log.Error("record timer", "timer", t.Name, "err", err)
		return ctx.Err() == nil
	}
	return found && how != over && ctx.Err() == nil
}

// restarts reports whether the newest attempt of a run ended as part of a restart, and the next one
// may still come.
func (ts *Timers) restarts(ctx context.Context, r *agency.Run) (bool, error) {
	a := &r.Attempt
	switch {
	case !a.State.Final() || !a.Restarting || a.EndedAt == nil:
		return false, nil
	case ts.Now().Sub(*a.EndedAt) < restartTimeout:
		return true, nil
	default:
		return ts.Targets.Restarting(ctx, r.ID) // a snapshot may take long
	}
}

// write sends the message of a timer, unless the run is not idle.
func (ts *Timers) write(ctx context.Context, t *agency.Timer) (outcome, string) {
	worker, err := ts.Targets.Worker(ctx, t.RunID)
	restarts := false
	if err == nil {
		restarts, err = ts.restarts(ctx, worker.Run)
	}
	switch {
	case err != nil:
		return failed, agency.AsError(err).Message
	case worker.Run.RemovedAt != nil:
		return over, "its run was removed"
	case restarts:
		return skipped, "it is being restarted"
	case worker.Run.Attempt.State.Final():
		return over, fmt.Sprintf("its run is %s", worker.Run.Attempt.State)
	}
	if why := busy(worker.Run, worker.Status); why != "" {
		return skipped, why
	}
	// Record the next time first, so that a crash in between does not type the message twice.
	if found, err := ts.Store.ChangeTimer(ctx, t.Seq, func(stored *agency.Timer) { stored.NextAt = t.NextAt }); err != nil || !found {
		return failed, "it could not be recorded"
	}
	sending, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	err = ts.Targets.Send(sending, t.RunID, t.Message)
	switch {
	case err == nil:
		return sent, "sent"
	case ctx.Err() != nil:
		return failed, "cut off by the end of the daemon"
	case agency.IsCode(err, agency.CodeInputRefused):
		return skipped, agency.AsError(err).Message
	default:
		return failed, agency.AsError(err).Message
	}
}

// busy returns why a timer should not write to a run now; empty when the run is idle. A run is idle
// when its turn ended and no request is open: the text of a timer must never be taken for an
// answer.
func busy(r *agency.Run, s agency.Status) string {
	agentState := &r.Attempt.AgentState
	switch {
	case s.Request != nil || len(agentState.Requests) > 0:
		return "it asks for something"
	case agentState.Background > 0:
		return "it has work in the background"
	case s.Label == agency.Waiting && agentState.Failure != nil:
		return "its model failed: " + agentState.Failure.Words()
	case s.Label == agency.Waiting, s.Label == agency.ReadyForReview:
		return ""
	default:
		return "it is " + string(s.Label)
	}
}
