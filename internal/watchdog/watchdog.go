// Package watchdog is evidence in, alerts out: a clock and a table. It looks at a worker when something about it changed or
// when time alone could matter, and at the disks once in an interval, tells somebody once for each episode, and costs no tokens.
package watchdog

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"sync"
	"time"

	"agency"
	"agency/internal/service"
)

// Worker is a run as the watchdog sees it.
type Worker struct {
	Run    *agency.Run // with what is known of its agent now
	Status agency.Status
	// OutputAt is when its output last said something new: digits, spinners and repaints taken out. Zero is unknown.
	OutputAt time.Time
	// Led says that a session leads it: that tries again what failed, goes on after what is done, and tells of its own end.
	Led bool
}

// condition is why somebody must act on a worker now.
func (w *Worker) condition(now time.Time) Condition {
	c := Alarm(w.Run, w.Status, signsOf(w).newest(), now)
	ended := w.Run.Attempt.State.Final() && c.Kind != agency.AlertNeedsInput
	passes := c.Class == agency.ErrorRateLimit || c.Class == agency.ErrorOverloaded
	if w.Led && (c.Kind == agency.AlertComplete || ended || passes) {
		return Condition{}
	}
	return c
}

// Detail is what goes into an alert besides the condition.
type Detail struct {
	Output  []string // the last lines, made safe for a terminal
	Dirty   bool
	Commits int
}

// Runs is what the watchdog asks of the engine.
type Runs interface {
	// Worker is one run; a removed one is agency.CodeRunNotFound.
	Worker(ctx context.Context, id agency.RunID) (*Worker, error)
	Activity(w *Worker) agency.Activity
	Detail(ctx context.Context, w *Worker, lines int) Detail
	// Attached says that a person looks at the worker's terminal.
	Attached(ctx context.Context, w *Worker) bool
}

// Store keeps the episodes. Each writing method is one transaction together with its event.
type Store interface {
	// Alerts are those that a filter chooses, oldest first.
	Alerts(ctx context.Context, f agency.AlertFilter) ([]agency.Alert, error)
	// OpenAlert adds an episode, unless the same one is open, or was and cannot come again: that of a run, a session's failure.
	OpenAlert(ctx context.Context, a *agency.Alert) (added bool, err error)
	ChangeAlert(ctx context.Context, id string, change func(a *agency.Alert) (agency.EventType, error)) (*agency.Alert, error)
	// WatchedRuns are the runs to look at first: those that are not final, and those whose end could be somebody's business.
	WatchedRuns(ctx context.Context) ([]agency.RunID, error)
	// WatchedSessions are the sessions to look at first: those that run, and those that failed without an alert.
	WatchedSessions(ctx context.Context) ([]agency.SessionID, error)
	// Troubled is a session with those of its agents that failed or wait in the queue with an error, and whether another one took
	// over from it; none is agency.CodeSessionNotFound.
	Troubled(ctx context.Context, id agency.SessionID) (s *agency.Session, agents []agency.SessionAgent, retried bool, err error)
	// LastSeq is the number of the newest event.
	LastSeq(ctx context.Context) (int64, error)
	// ChangedRuns are the runs with events behind seq, and the newest seq.
	ChangedRuns(ctx context.Context, seq int64) (ids []agency.RunID, newest int64, err error)
	// OpenedSeq is the seq before the oldest open alert of a session that a turn could end; the newest seq when there is none.
	OpenedSeq(ctx context.Context) (int64, error)
	// SessionTurns are what events behind seq tell of sessions and of their alerts, in order, and the newest seq.
	SessionTurns(ctx context.Context, seq int64) (turns []agency.SessionTurn, newest int64, err error)
	Changed() <-chan struct{}
}

// AlertSink brings an alert to those who should act: its level says how far up. It returns who they were; none is no error.
type AlertSink interface {
	Deliver(ctx context.Context, a *agency.Alert, w *Worker) (recipients []string, err error)
	DeliverSession(ctx context.Context, a *agency.Alert, s *agency.Session) (recipients []string, err error)
	DeliverHost(ctx context.Context, a *agency.Alert) (recipients []string, err error)
}

// Settings are the thresholds.
type Settings struct {
	Poll           time.Duration // between looks at a worker that is silent
	StuckIntervals int           // of Poll without a change before a worker is stuck, for runs that have none of their own
	StallThreshold time.Duration // instead of them, while something long is known to go on; likewise
	WorkerTags     []string
	WorkerPattern  *regexp.Regexp // of names; nil is any
	PreviewLines   int
}

// Deps are the parts that a watchdog works with.
type Deps struct {
	Runs  Runs
	Store Store
	Sink  AlertSink
	// Disks are the disks that agency writes on, each with its own Path. It is called once in an interval.
	Disks func() ([]agency.Disk, error)
	Log   *slog.Logger
	Now   func() time.Time // runs backwards only when the clock was more than a day ahead
	// Elapsed is how much of the time since then really passed: without what the clock was set forward by, or the machine slept.
	Elapsed func(since time.Time) time.Duration
	NewID   func() string
}

// Watchdog watches all workers and sessions of one data root, and its disks. Only one may exist for a root at a time.
type Watchdog struct {
	Deps

	work service.Background
	wake chan struct{} // holds one token after Set

	mu         sync.Mutex
	settings   Settings
	inactivity map[agency.RunID]*inactivity
	due        map[agency.RunID]time.Time // when time alone makes a look worth while
	ticked     time.Time                  // the last look at anything

	dueSessions map[agency.SessionID]time.Time
	turns       map[agency.SessionID][]agency.SessionTurn // told of since the last look that succeeded
}

// New makes a watchdog. It does nothing until Start.
func New(deps Deps, settings Settings) *Watchdog {
	return &Watchdog{
		Deps: deps, settings: settings, wake: make(chan struct{}, 1),
		inactivity: map[agency.RunID]*inactivity{}, due: map[agency.RunID]time.Time{}, dueSessions: map[agency.SessionID]time.Time{},
		turns: map[agency.SessionID][]agency.SessionTurn{},
	}
}

// Start reads the open episodes, looks at every worker and session once, and then watches until Stop. What was alerted before is not
// alerted again; what needs somebody and was not is alerted now; the clock of the stuck starts anew.
func (w *Watchdog) Start(ctx context.Context) error {
	return w.work.Start(ctx, w.begin)
}

func (w *Watchdog) begin(ctx context.Context) error {
	seq, err := w.Store.LastSeq(ctx)
	if err != nil {
		return fmt.Errorf("start the watchdog: %w", err)
	}
	// The watchdog before may have ended between an event and its look, and nothing else tells that a reason went and came again.
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

// Stop ends the watching. It is idempotent and waits.
func (w *Watchdog) Stop() { w.work.Stop() }

// Set changes the thresholds and who is watched. Every run is looked at again, at once.
func (w *Watchdog) Set(settings Settings) {
	w.mu.Lock()
	w.settings = settings
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default: // it is to wake up already
	}
}

// everyone are all runs and sessions, and those of open alerts, which may be gone.
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

// watch looks at what changed and at what is due: at runs with events behind seq, and at sessions with events behind turned.
func (w *Watchdog) watch(ctx context.Context, seq, turned int64) {
	var before time.Time // the last look at what is due
	var hostDue time.Time
	for ctx.Err() == nil {
		changed := w.Store.Changed()
		ids, newest, err := w.Store.ChangedRuns(ctx, seq)
		if err != nil {
			if ctx.Err() == nil {
				w.Log.Error("read changed runs", "err", err)
			}
		} else {
			seq = newest
		}
		turns, newest, err := w.Store.SessionTurns(ctx, turned)
		if err != nil {
			if ctx.Err() == nil {
				w.Log.Error("read changed sessions", "err", err)
			}
		} else {
			turned = newest
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
		if next.IsZero() || !nextSession.IsZero() && nextSession.Before(next) {
			next = nextSession
		}
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
		wait := hostDue.Sub(now) // an interval at most, by which a clock that jumps is noticed
		if !next.IsZero() {
			wait = min(wait, next.Sub(now))
		}
		timer := time.NewTimer(wait)
		select {
		case <-changed:
		case <-timer.C:
		case <-w.wake:
			hostDue = w.Now()
			if ids, _, err := w.everyone(ctx); err == nil { // no setting is about sessions
				w.look(ctx, ids)
			} else if ctx.Err() == nil {
				w.Log.Error("read runs", "err", err)
			}
		case <-ctx.Done():
		}
		timer.Stop()
	}
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

// ripe are those whose time has come, and when that of the next one does; zero is never.
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

// allDue has everybody's time come, because the clock by which it was asked for was ahead.
func allDue[K comparable](due map[K]time.Time, now time.Time) {
	for id := range due {
		due[id] = now
	}
}

// put asks for a time; zero is never.
func put[K comparable](due map[K]time.Time, id K, at time.Time) {
	if at.IsZero() {
		delete(due, id)
	} else {
		due[id] = at
	}
}

// again asks for a look at a time; zero is never by time alone.
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

// watches says whether a run is a worker.
func (s *Settings) watches(r *agency.Run) bool {
	tagged := slices.ContainsFunc(r.Tags, func(tag string) bool { return slices.Contains(s.WorkerTags, tag) })
	return tagged && (s.WorkerPattern == nil || s.WorkerPattern.MatchString(r.Ref()))
}
