// Package watchdog turns evidence into alerts by a clock and a table. It looks at a worker when
// something about it changed or when time alone could matter, and at the disks once per interval.
// It sends one alert per episode and costs no tokens.
package watchdog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"sync"
	"time"

	"agency"
	"agency/internal/service"
)

// Worker is a run with what the watchdog needs of it.
type Worker struct {
	Run    *agency.Run // with the current knowledge of its agent
	Status agency.Status
	// OutputAt is when its output last had new content, not counting digits, spinners and repaints.
	// Zero is unknown.
	OutputAt time.Time
	// Led reports whether a session leads it: the session retries what failed, continues after what
	// is done, and reports its own end.
	Led bool
}

// condition returns why a user or agent must act on a worker now.
func (w *Worker) condition(now time.Time) Condition {
	c := Alarm(w.Run, w.Status, signsOf(w).newest(), now)
	ended := w.Run.Attempt.State.Final() && c.Kind != agency.AlertNeedsInput
	passes := c.Class == agency.ErrorRateLimit || c.Class == agency.ErrorOverloaded
	if w.Led && (c.Kind == agency.AlertComplete || ended || passes) {
		return Condition{}
	}
	return c
}

// Detail is what an alert contains in addition to the condition.
type Detail struct {
	Output  []string // the last lines, made safe for a terminal
	Dirty   bool
	Commits int
}

// Runs is what the watchdog needs from the engine.
type Runs interface {
	Worker(ctx context.Context, id agency.RunID) (*Worker, error)
	Activity(w *Worker) agency.Activity
	Detail(ctx context.Context, w *Worker, lines int) Detail
	// Attached reports whether a user has the worker's terminal open.
	Attached(ctx context.Context, w *Worker) bool
}

// Store stores the episodes. Each writing method is one transaction together with its event.
type Store interface {
	// Alerts returns the alerts that a filter selects, oldest first.
	Alerts(ctx context.Context, f agency.AlertFilter) ([]agency.Alert, error)
	// OpenAlert adds an episode, unless the same one is open, or was open and cannot come again:
	// that of a run, a session's failure.
	OpenAlert(ctx context.Context, a *agency.Alert) (added bool, err error)
	ChangeAlert(ctx context.Context, id string, change func(a *agency.Alert) (agency.EventType, error)) (*agency.Alert, error)
	// WatchedRuns returns the runs to look at first: those that are not final, those in landing
	// queues, removed or not, and those whose end may need action.
	WatchedRuns(ctx context.Context) ([]agency.RunID, error)
	// WatchedSessions returns the sessions to look at first: those that run, and those that failed
	// without an alert.
	WatchedSessions(ctx context.Context) ([]agency.SessionID, error)
	// Troubled returns a session with those of its agents that failed or wait in the queue with an
	// error, and whether another session retries it. An unknown id is agency.CodeSessionNotFound.
	Troubled(ctx context.Context, id agency.SessionID) (s *agency.Session, agents []agency.SessionAgent, retried bool, err error)
	// QueueEntries returns entries of landing queues, the oldest first.
	QueueEntries(ctx context.Context, f agency.QueueFilter) ([]agency.QueueEntry, error)
	// Queue returns the record of one queue.
	Queue(ctx context.Context, ref agency.QueueRef) (*agency.Queue, error)
	// LastSeq returns the number of the newest event.
	LastSeq(ctx context.Context) (int64, error)
	// ChangedRuns returns the runs with events after seq, and the newest seq.
	ChangedRuns(ctx context.Context, seq int64) (ids []agency.RunID, newest int64, err error)
	// OpenedSeq returns the seq before the oldest open alert of a session that an event could end;
	// the newest seq when there is none.
	OpenedSeq(ctx context.Context) (int64, error)
	// SessionTurns returns the events after seq about sessions and their alerts, in order, and the
	// newest seq.
	SessionTurns(ctx context.Context, seq int64) (turns []agency.SessionTurn, newest int64, err error)
	Changed() <-chan struct{}
}

// AlertSink sends an alert to the runs and the user that should act, according to its level. It
// returns the recipients; none is not an error.
type AlertSink interface {
	Deliver(ctx context.Context, a *agency.Alert, w *Worker) (recipients []string, err error)
	DeliverSession(ctx context.Context, a *agency.Alert, s *agency.Session) (recipients []string, err error)
	DeliverHost(ctx context.Context, a *agency.Alert) (recipients []string, err error)
}

// Settings are the thresholds.
type Settings struct {
	Poll           time.Duration // between looks at an inactive worker
	StuckIntervals int           // number of Polls without a change before a worker is stuck, for runs that set none
	StallThreshold time.Duration // used instead while something long is known to run; likewise
	WorkerTags     []string
	WorkerPattern  *regexp.Regexp // matches the names of workers; nil matches any
	PreviewLines   int
}

// Deps are the dependencies of a watchdog.
type Deps struct {
	Runs  Runs
	Store Store
	Sink  AlertSink
	// Disks returns the disks that agency writes to, each with its own Path. It is called once per
	// interval.
	Disks func() ([]agency.Disk, error)
	Log   *slog.Logger
	Now   func() time.Time // runs backwards only when the clock was more than a day ahead
	// Elapsed returns how much time really passed since then: without forward jumps of the clock
	// and sleep of the machine.
	Elapsed func(since time.Time) time.Duration
	NewID   func() string
}

// Watchdog watches all workers, sessions and disks of one data root. Only one may exist for a root
// at a time.
type Watchdog struct {
	Deps

	work service.Background
	wake chan struct{} // holds one token after Set

	mu         sync.Mutex
	settings   Settings
	inactivity map[agency.RunID]*inactivity
	due        map[agency.RunID]time.Time // when time alone makes a look necessary
	ticked     time.Time                  // the last look at anything

	dueSessions map[agency.SessionID]time.Time
	turns       map[agency.SessionID][]agency.SessionTurn // events since the last successful look
}

// New returns a watchdog that does nothing until Start.
func New(deps Deps, settings Settings) *Watchdog {
	return &Watchdog{
		Deps: deps, settings: settings, wake: make(chan struct{}, 1),
		inactivity: map[agency.RunID]*inactivity{}, due: map[agency.RunID]time.Time{}, dueSessions: map[agency.SessionID]time.Time{},
		turns: map[agency.SessionID][]agency.SessionTurn{},
	}
}

// Start reads the open episodes, looks at every worker and session once, and then watches until
// Stop. Earlier alerts are not repeated; conditions without an alert get one now; the timeouts for
// stuck workers begin again.
func (w *Watchdog) Start(ctx context.Context) error {
	return w.work.Start(ctx, w.begin)
}

func (w *Watchdog) begin(ctx context.Context) error {
	seq, err := w.Store.LastSeq(ctx)
	if err != nil {
		return fmt.Errorf("start the watchdog: %w", err)
	}
	// The previous watchdog may have ended between an event and its look. Only the events show that
	// a reason ended and came again.
	opened, err := w.Store.OpenedSeq(ctx)
	if err != nil {
		return fmt.Errorf("start the watchdog: %w", err)
	}
	turns, turned, err := w.Store.SessionTurns(ctx, opened)
	if err != nil {
		return fmt.Errorf("start the watchdog: %w", err)
	}
	ids, sessions, err := w.everyone(ctx)
	if err != nil {
		return fmt.Errorf("start the watchdog: %w", err)
	}
	w.work.Go(func() {
		w.look(ctx, ids)
		w.lookAtSessions(ctx, turns, sessions)
		w.watch(ctx, seq, turned)
	})
	return nil
}

// Stop ends the watching and waits for it. It is idempotent.
func (w *Watchdog) Stop() { w.work.Stop() }

// Set changes the thresholds and the set of workers. Every run is looked at again, at once.
func (w *Watchdog) Set(settings Settings) {
	w.mu.Lock()
	w.settings = settings
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default: // a wake-up is already requested
	}
}

// everyone returns all runs and sessions, and those of open alerts, which may be gone.
func (w *Watchdog) everyone(ctx context.Context) (ids []agency.RunID, sessions []agency.SessionID, err error) {
	if ids, err = w.Store.WatchedRuns(ctx); err != nil {
		return nil, nil, err
	}
	if sessions, err = w.Store.WatchedSessions(ctx); err != nil {
		return nil, nil, err
	}
	alerts, err := w.Store.Alerts(ctx, agency.AlertFilter{})
	for i := range alerts {
		switch a := &alerts[i]; {
		case a.Session != "":
			sessions = append(sessions, a.Session)
		case a.RunID != "":
			ids = append(ids, a.RunID)
		}
	}
	return ids, sessions, err
}

// TickedAt is when the watchdog last looked at anything.
func (w *Watchdog) TickedAt() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ticked
}

// watch looks at changes and at what is due: at runs with events after seq, and at sessions with
// events after turned.
func (w *Watchdog) watch(ctx context.Context, seq, turned int64) {
	var before time.Time // the last look at what is due
	var hostDue time.Time
	changed := w.Store.Changed()
	for unread := true; ctx.Err() == nil; {
		// Without a commit since the last reading there is nothing new to read.
		select {
		case <-changed:
			changed, unread = w.Store.Changed(), true
		default:
		}
		var ids []agency.RunID
		var turns []agency.SessionTurn
		if unread {
			var err error
			if ids, turns, err = w.read(ctx, &seq, &turned); err != nil && ctx.Err() == nil {
				w.Log.Error("read what changed", "err", err)
			}
			unread = err != nil
		}
		now := w.Now()
		w.mu.Lock()
		if now.Before(before) {
			allDue(w.due, now)
			allDue(w.dueSessions, now)
			hostDue = now
		}
		before = now
		due, next := ripe(w.due, now)
		sessions, nextSession := ripe(w.dueSessions, now)
		w.mu.Unlock()
		next = sooner(next, nextSession)
		if ids = append(ids, due...); len(ids) > 0 {
			w.look(ctx, ids)
		}
		if len(turns)+len(sessions) > 0 {
			w.lookAtSessions(ctx, turns, sessions)
		}
		if !now.Before(hostDue) {
			hostDue = w.lookAtHost(ctx)
		}
		if len(ids)+len(turns)+len(sessions) > 0 {
			continue
		}
		wait := hostDue.Sub(now) // at most one interval, so that a clock jump is noticed
		if !next.IsZero() {
			wait = min(wait, next.Sub(now))
		}
		timer := time.NewTimer(wait)
		select {
		case <-changed:
		case <-timer.C:
		case <-w.wake:
			hostDue = w.Now()
			w.lookAtAll(ctx) // settings do not affect sessions
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// lookAtAll looks at every run.
func (w *Watchdog) lookAtAll(ctx context.Context) {
	ids, _, err := w.everyone(ctx)
	if err == nil {
		w.look(ctx, ids)
	} else if ctx.Err() == nil {
		w.Log.Error("read runs", "err", err)
	}
}

// read returns the runs with events after seq and the sessions with events after turned, and moves
// both numbers forward. What could not be read comes with a later call.
func (w *Watchdog) read(ctx context.Context, seq, turned *int64) ([]agency.RunID, []agency.SessionTurn, error) {
	ids, newest, err1 := w.Store.ChangedRuns(ctx, *seq)
	if err1 == nil {
		*seq = newest
	}
	turns, newest, err2 := w.Store.SessionTurns(ctx, *turned)
	if err2 == nil {
		*turned = newest
	}
	return ids, turns, errors.Join(err1, err2)
}

// look looks at workers.
func (w *Watchdog) look(ctx context.Context, ids []agency.RunID) {
	poll := w.current().Poll
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		if ctx.Err() != nil {
			return
		}
		if err := w.lookAt(ctx, id); err != nil && ctx.Err() == nil {
			w.Log.Error("look at worker", "run", id, "err", err)
			w.again(id, w.Now().Add(poll))
		}
	}
	w.tick()
}

func (w *Watchdog) tick() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ticked = w.Now()
}

// ripe returns the ids whose time has come, and the time of the next one; zero is never.
func ripe[K comparable](due map[K]time.Time, now time.Time) (ids []K, next time.Time) {
	for id, at := range due {
		switch {
		case !at.After(now):
			ids = append(ids, id)
		case next.IsZero() || at.Before(next):
			next = at
		}
	}
	return ids, next
}

// allDue makes everything due now, because the clock that set the times was ahead.
func allDue[K comparable](due map[K]time.Time, now time.Time) {
	for id := range due {
		due[id] = now
	}
}

// put sets the time of an id; zero is never.
func put[K comparable](due map[K]time.Time, id K, at time.Time) {
	if at.IsZero() {
		delete(due, id)
	} else {
		due[id] = at
	}
}

// again schedules a look at a run; zero is never.
func (w *Watchdog) again(id agency.RunID, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	put(w.due, id, at)
}

func (w *Watchdog) current() Settings {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.settings
}

// watches reports whether a run is a worker.
func (s *Settings) watches(r *agency.Run) bool {
	tagged := slices.ContainsFunc(r.Tags, func(tag string) bool { return slices.Contains(s.WorkerTags, tag) })
	return tagged && (s.WorkerPattern == nil || s.WorkerPattern.MatchString(r.Ref()))
}
