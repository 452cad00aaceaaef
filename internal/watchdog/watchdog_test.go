package watchdog_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agency"
	"agency/internal/status"
	"agency/internal/watchdog"
)

const (
	poll  = 30 * time.Second
	stall = 15 * time.Minute
)

// world is a set of workers, a store of alerts in memory and a recipient, under a simulated clock.
type world struct {
	record

	t   *testing.T
	dog *watchdog.Watchdog
}

// record is what the watchdog sees and changes: runs, sessions, alerts, disks.
type record struct {
	mu sync.Mutex

	workers   map[agency.RunID]*worker
	alerts    []agency.Alert
	seq       int64
	events    map[agency.RunID]int64 // newest event of each run
	changed   chan struct{}
	notified  []string
	unheard   bool
	notifying func()       // called during a notification; may be nil
	ahead     atomic.Int64 // how far the clock of the watchdog is
	measured  int

	plans  map[agency.SessionID]*plan
	turns  []numbered // events about sessions
	looked int        // at sessions
	// unreadable is how many of the next looks at sessions fail.
	unreadable int
	drawn      atomic.Int64

	entries []agency.QueueEntry // of landing queues
	line    agency.Queue        // the queue of all entries

	disks []agency.Disk
	blind bool // the free space cannot be read
}

// worker is one run and its measurable activity.
type worker struct {
	run      agency.Run
	output   time.Time
	activity agency.Activity
	busy     bool // uses a core all the time
	begun    time.Time
	attached bool
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, record: record{workers: map[agency.RunID]*worker{}, plans: map[agency.SessionID]*plan{}, events: map[agency.RunID]int64{}, changed: make(chan struct{})}}
	t.Cleanup(func() { w.dog.Stop() })
	w.start()
	return w
}

func (w *record) now() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }

func (w *world) settings() watchdog.Settings {
	return watchdog.Settings{Poll: poll, StuckIntervals: 3, StallThreshold: stall, WorkerTags: []string{"worker"}, PreviewLines: 5}
}

func (w *world) start() {
	w.t.Helper()
	w.dog = watchdog.New(watchdog.Deps{
		Runs: w, Store: w, Sink: w, Disks: w.Disks, Log: slog.New(slog.DiscardHandler), Now: w.now,
		Elapsed: func(since time.Time) time.Duration { return max(0, w.now().Sub(since)) },
		NewID:   func() string { return fmt.Sprintf("a_%d", w.drawn.Add(1)) },
	}, w.settings())
	if err := w.dog.Start(context.Background()); err != nil {
		w.t.Fatal(err)
	}
	synctest.Wait()
}

func (w *world) restart() {
	w.dog.Stop()
	w.start()
}

// add starts a worker in the status working.
func (w *record) add(name string) *worker {
	now := time.Now()
	word := agency.NewContract(now)
	worker := &worker{begun: now, output: now, run: agency.Run{
		ID: agency.RunID("r_" + name), Name: name, Tags: []string{"worker"},
		Attempt: agency.Attempt{Number: 1, State: agency.Running, CreatedAt: now, StartedAt: &now, Reported: agency.Observed{Contract: &word, At: now}},
	}}
	w.mu.Lock()
	w.workers[worker.run.ID] = worker
	w.mu.Unlock()
	w.change(worker, func() {})
	return worker
}

// change edits a worker and reports it, as an event of the record does.
func (w *record) change(worker *worker, edit func()) {
	w.tell(worker, edit)
	synctest.Wait()
}

// tell is change without waiting for its effects.
func (w *record) tell(worker *worker, edit func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	edit()
	w.seq++
	w.events[worker.run.ID] = w.seq
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// kinds returns the kinds of all alerts so far.
func (w *record) kinds() []agency.AlertKind {
	w.mu.Lock()
	defer w.mu.Unlock()
	kinds := []agency.AlertKind{}
	for i := range w.alerts {
		kinds = append(kinds, w.alerts[i].Kind)
	}
	return kinds
}

// alert returns one of the alerts so far, tellings the recipients of the notifications.
func (w *record) alert(i int) agency.Alert {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.alerts[i]
}

func (w *record) notifications() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.notified)
}

func (w *record) open() int {
	open, _ := w.Alerts(context.Background(), agency.AlertFilter{})
	return len(open)
}

func (w *world) want(kinds ...agency.AlertKind) {
	w.t.Helper()
	if got := w.kinds(); !slices.Equal(got, kinds) {
		w.t.Errorf("alerts %q, want %q", got, kinds)
	}
}

func (w *record) Worker(_ context.Context, id agency.RunID) (*watchdog.Worker, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	worker := w.workers[id]
	if worker == nil {
		return nil, agency.Errorf(agency.CodeRunNotFound, "no run %s", id)
	}
	run := worker.run
	shown := status.Derive(status.Facts{Run: &run, StallThreshold: stall}, time.Now())
	return &watchdog.Worker{Run: &run, Status: shown, OutputAt: worker.output}, nil
}

func (w *record) WatchedRuns(context.Context) ([]agency.RunID, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ids := []agency.RunID{}
	for id, worker := range w.workers {
		r := &worker.run
		settled := r.MergedAt != nil || r.Abandoned || r.Attempt.State == agency.Killed && r.Flag == nil
		if worker.run.RemovedAt == nil && (!r.Attempt.State.Final() || !settled) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

func (w *record) Activity(of *watchdog.Worker) agency.Activity {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.measured++
	worker := w.workers[of.Run.ID]
	activity := worker.activity
	if worker.busy {
		activity.CPU += time.Since(worker.begun)
	}
	return activity
}

func (w *record) Detail(context.Context, *watchdog.Worker, int) watchdog.Detail {
	return watchdog.Detail{Output: []string{"last line"}, Commits: 2}
}

func (w *record) Attached(_ context.Context, of *watchdog.Worker) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.workers[of.Run.ID].attached
}

func (w *record) Alerts(_ context.Context, f agency.AlertFilter) ([]agency.Alert, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	alerts := []agency.Alert{}
	for _, a := range w.alerts {
		if (a.Open() || f.Resolved) && (f.Run == "" || a.RunID == f.Run) && (f.Session == "" || a.Session == f.Session) &&
			(!f.Host || a.RunID == "" && a.Session == "") {
			alerts = append(alerts, a)
		}
	}
	return alerts, nil
}

func (w *record) OpenAlert(_ context.Context, a *agency.Alert) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if slices.ContainsFunc(w.alerts, func(o agency.Alert) bool {
		again := o.RunID == "" && !o.Open() && o.Kind != agency.AlertSessionFailed
		return o.RunID == a.RunID && o.Session == a.Session && o.Attempt == a.Attempt && o.Kind == a.Kind && o.Cause == a.Cause && !again
	}) {
		return false, nil
	}
	w.alerts = append(w.alerts, *a)
	if a.Session != "" {
		w.append(agency.SessionTurn{Type: agency.AlertOpened, Session: a.Session, Alert: a.ID})
	}
	return true, nil
}

func (w *record) ChangeAlert(_ context.Context, id string, change func(*agency.Alert) (agency.EventType, error)) (*agency.Alert, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.alerts, func(a agency.Alert) bool { return a.ID == id })
	a := w.alerts[i]
	event, err := change(&a)
	if err == nil && event != "" {
		w.alerts[i] = a
		if a.Session != "" {
			w.append(agency.SessionTurn{Type: event, Session: a.Session, Alert: a.ID})
		}
	}
	return &a, err
}

func (w *record) LastSeq(context.Context) (int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seq, nil
}

func (w *record) ChangedRuns(_ context.Context, since int64) ([]agency.RunID, int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ids := []agency.RunID{}
	for id, seq := range w.events {
		if seq > since {
			ids = append(ids, id)
		}
	}
	return ids, w.seq, nil
}

func (w *record) Changed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

func (w *record) Deliver(_ context.Context, a *agency.Alert, of *watchdog.Worker) ([]string, error) {
	w.mu.Lock()
	notifying := w.notifying
	w.mu.Unlock()
	if notifying != nil {
		notifying()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notified = append(w.notified, fmt.Sprintf("%s %s %d", of.Run.Name, a.Kind, a.Level))
	if w.unheard {
		return nil, nil
	}
	return []string{"user"}, nil
}

// act changes an alert as a user does.
func (w *world) act(i int, change func(a *agency.Alert)) {
	w.mu.Lock()
	change(&w.alerts[i])
	worker := w.workers[w.alerts[i].RunID]
	w.mu.Unlock()
	w.change(worker, func() {})
}

func asks(r *agency.Run, question string) {
	c := agency.NewContract(time.Now())
	c.Status, c.Questions = agency.ReportedNeedsInput, []string{question}
	r.Attempt.Reported = agency.Observed{Contract: &c, At: time.Now()}
}

func works(r *agency.Run) {
	c := agency.NewContract(time.Now())
	r.Attempt.Reported = agency.Observed{Contract: &c, At: time.Now()}
}

func ends(r *agency.Run, state agency.State, code agency.Code) {
	r.Attempt.State, r.Attempt.EndedAt, r.Attempt.ErrorCode, r.Attempt.Error = state, new(time.Now()), code, string(code)
}

// A worker with any sign of work is never alerted, however long it takes.
func TestHealthyIsSilent(t *testing.T) {
	t.Parallel()
	for name, life := range map[string]func(w *world, worker *worker){
		"output":                         func(w *world, worker *worker) { w.mu.Lock(); worker.output = time.Now(); w.mu.Unlock() },
		"a compiler that prints nothing": func(w *world, worker *worker) { w.mu.Lock(); worker.busy = true; w.mu.Unlock() },
		"files":                          func(w *world, worker *worker) { w.mu.Lock(); worker.activity.FilesAt = time.Now(); w.mu.Unlock() },
		"hooks": func(w *world, worker *worker) {
			w.change(worker, func() { worker.run.Attempt.AgentState.HeardAt = time.Now() })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				worker := w.add("a")
				for range 180 {
					w.pass(20 * time.Second)
					life(w, worker)
				}
				w.want()
			})
		})
	}
}

// A worker without a sign of life is stuck after three intervals and not before, once; the alert
// ends when it moves.
func TestStuck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		worker := w.add("a")
		w.pass(3*poll - time.Nanosecond)
		w.want()
		w.pass(time.Nanosecond)
		w.want(agency.AlertStuck)
		w.pass(4 * time.Minute)
		w.want(agency.AlertStuck)
		var payload map[string]any
		if err := json.Unmarshal(w.alert(0).Payload, &payload); err != nil {
			t.Fatal(err)
		}
		for key, want := range map[string]any{
			"worker_id": "r_a", "worker_name": "a", "attempt": 1.0, "duration_secs": 90.0, "intervals_stuck": 3.0,
		} {
			if payload[key] != want {
				t.Errorf("%s is %v, want %v", key, payload[key], want)
			}
		}
		w.change(worker, func() { worker.run.Attempt.AgentState.HeardAt = time.Now() })
		if w.open() != 0 {
			t.Error("it moved, and the alert is open")
		}
		w.pass(3 * poll)
		w.want(agency.AlertStuck, agency.AlertStuck) // another inactivity is another episode
	})
}

// A turning spinner is not progress: its output contains nothing new, and it needs little processor
// time.
func TestHungSpinner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		worker := w.add("a")
		for range 10 {
			w.mu.Lock()
			worker.activity.CPU += poll / 100 // one hundredth of a core
			w.mu.Unlock()
			w.pass(poll)
		}
		w.want(agency.AlertStuck)
	})
}

// A known long operation gets the longer threshold, and an announced quiet time its own.
func TestTimeout(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		set   func(a *agency.Attempt)
		after time.Duration
	}{
		"a tool runs":           {func(a *agency.Attempt) { a.AgentState.Tools = []agency.Tool{{ID: "1"}} }, stall},
		"a silent model call":   {func(a *agency.Attempt) { a.Headless, a.AgentState.Turn = true, agency.TurnWorking }, stall},
		"background work":       {func(a *agency.Attempt) { a.AgentState.Background = 1 }, stall},
		"an announced silence":  {func(a *agency.Attempt) { a.AgentState.QuietUntil = time.Now().Add(20 * time.Minute) }, 20 * time.Minute},
		"nothing that is known": {func(*agency.Attempt) {}, 3 * poll},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				worker := w.add("a")
				w.change(worker, func() { tt.set(&worker.run.Attempt) })
				w.pass(tt.after - time.Nanosecond)
				w.want()
				w.pass(time.Nanosecond)
				w.want(agency.AlertStuck)
			})
		})
	}
}

// Each condition makes an alert at once, with the data of its kind.
func TestConditions(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(r *agency.Run)
		kind   agency.AlertKind
		field  string
		want   any
	}{
		"lost":      {func(r *agency.Run) { ends(r, agency.Failed, agency.CodeRunnerDisappeared) }, agency.AlertLost, "error_context", "(E_RUNNER_DISAPPEARED)"},
		"failed":    {func(r *agency.Run) { ends(r, agency.Failed, ""); r.Attempt.Error = "exit 3" }, agency.AlertError, "error_context", "(exit 3)"},
		"asks":      {func(r *agency.Run) { asks(r, "Which?") }, agency.AlertNeedsInput, "prompt_preview", "Which?"},
		"completed": {func(r *agency.Run) { ends(r, agency.Completed, "") }, agency.AlertComplete, "outcome", "success"},
		"flagged":   {func(r *agency.Run) { r.Flag = &agency.Flag{Reason: "tests fail", At: time.Now()} }, agency.AlertNeedsInput, "prompt_type", "attention"},
		"failed, then flagged": {func(r *agency.Run) {
			ends(r, agency.Failed, "")
			r.Flag = &agency.Flag{Reason: "who knows the licence?", At: r.Attempt.EndedAt.Add(time.Millisecond)}
		}, agency.AlertNeedsInput, "prompt_preview", "who knows the licence?"},
		"flagged, then failed": {func(r *agency.Run) {
			ends(r, agency.Failed, "")
			r.Attempt.Error, r.Flag = "exit 3", &agency.Flag{Reason: "look", At: *r.Attempt.EndedAt}
		}, agency.AlertError, "error_context", "(exit 3)"},
		"permission": {func(r *agency.Run) {
			r.Attempt.AgentState.Requests = []agency.Request{{ID: "7", Kind: agency.AsksPermission, Tool: "Bash", Text: "make", At: time.UnixMilli(5)}}
		}, agency.AlertNeedsInput, "prompt_id", "7@5"},
		"refused by the model": {func(r *agency.Run) {
			r.Attempt.AgentState.Turn, r.Attempt.AgentState.TurnAt = agency.TurnEnded, time.Now()
			r.Attempt.AgentState.Failure = &agency.AgentError{Class: agency.ErrorRateLimit, At: time.Now()}
		}, agency.AlertError, "error_class", "rate_limit"},
		"help": {func(r *agency.Run) {
			r.Attempt.AgentState.Reported = &agency.Reported{Report: agency.ReportsHelp, Text: "I am lost", At: time.Now()}
		}, agency.AlertNeedsInput, "prompt_preview", "I am lost"},
		"reported complete": {func(r *agency.Run) {
			r.Attempt.AgentState.Reported = &agency.Reported{Report: agency.ReportsComplete, Text: "all is done", At: time.Now()}
		}, agency.AlertComplete, "outcome", "success"},
		"reported an error": {func(r *agency.Run) {
			r.Attempt.AgentState.Reported = &agency.Reported{Report: agency.ReportsError, Text: "no compiler", At: time.Now()}
		}, agency.AlertError, "error_context", "no compiler"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				worker := w.add("a")
				w.pass(time.Second)
				w.change(worker, func() { tt.change(&worker.run) })
				w.want(tt.kind)
				var payload map[string]any
				if err := json.Unmarshal(w.alert(0).Payload, &payload); err != nil || payload[tt.field] != tt.want {
					t.Errorf("%s is %v, want %v (%v)", tt.field, payload[tt.field], tt.want, err)
				}
			})
		})
	}
}

// An agent that rests after its turn, without a report, makes an alert after a minute.
func TestTurnEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		worker := w.add("a")
		w.change(worker, func() {
			worker.run.Attempt.AgentState.Turn, worker.run.Attempt.AgentState.TurnAt = agency.TurnEnded, time.Now()
		})
		w.pass(watchdog.TurnEndedTimeout - time.Nanosecond)
		w.want()
		w.pass(time.Nanosecond)
		w.want(agency.AlertNeedsInput)
	})
}

// A user at the terminal needs no alert about what it shows, and gets it after detaching.
func TestAttached(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		worker := w.add("a")
		w.change(worker, func() { worker.attached = true; asks(&worker.run, "Which?") })
		w.pass(10 * time.Minute)
		w.want()
		w.mu.Lock()
		worker.attached = false
		w.mu.Unlock()
		w.pass(poll)
		w.want(agency.AlertNeedsInput)
		w.change(worker, func() { worker.attached = true; ends(&worker.run, agency.Failed, "") }) // this alert comes in any case
		w.want(agency.AlertNeedsInput, agency.AlertError)
	})
}

// An alert without a reaction is repeated, each time later, and escalates from the owner to the
// user. After an acknowledgement it is not repeated.
func TestEscalation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		worker := w.add("a")
		w.change(worker, func() { asks(&worker.run, "Which?") })
		w.pass(5*time.Minute - time.Nanosecond)
		if len(w.notifications()) != 1 {
			t.Fatalf("notified %q", w.notifications())
		}
		w.pass(time.Nanosecond + 15*time.Minute + time.Hour)
		want := []string{"a worker.needs_input 0", "a worker.needs_input 1", "a worker.needs_input 2", "a worker.needs_input 2"}
		if !slices.Equal(w.notifications(), want) {
			t.Errorf("notified %q, want %q", w.notifications(), want)
		}
		w.act(0, func(a *agency.Alert) { a.AckedAt = new(time.Now()) })
		w.pass(24 * time.Hour)
		if len(w.notifications()) != len(want) {
			t.Errorf("notified again after it was acknowledged: %q", w.notifications())
		}
		w.want(agency.AlertNeedsInput)
	})
}

// A restart neither repeats an alert nor loses one, and the time before it does not count as
// inactivity.
func TestRestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		asking, working, failed := w.add("asking"), w.add("working"), w.add("failed")
		w.change(asking, func() { asks(&asking.run, "Which?") })
		w.pass(80 * time.Second)
		w.dog.Stop()
		failed.run.Attempt.State = agency.Failed
		failed.run.Attempt.EndedAt = new(time.Now())
		w.start()
		w.want(agency.AlertNeedsInput, agency.AlertError)
		w.pass(80 * time.Second)
		w.want(agency.AlertNeedsInput, agency.AlertError)
		w.pass(10 * time.Second)
		w.want(agency.AlertNeedsInput, agency.AlertError, agency.AlertStuck)
		w.restart()
		if w.open() != 3 {
			t.Errorf("%d are open after a restart, want 3", w.open())
		}
		w.change(working, func() { works(&working.run) })
		if w.open() != 2 {
			t.Errorf("%d are open, want 2", w.open())
		}
	})
}

// Runs that are not workers are not watched, and a removed one is forgotten.
func TestOnlyWorkers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		other, worker := w.add("other"), w.add("a")
		w.change(other, func() { other.run.Tags = []string{"orchestrator"} })
		w.pass(time.Hour)
		w.want(agency.AlertStuck)
		w.change(worker, func() { worker.run.RemovedAt = new(time.Now()) })
		if w.open() != 0 {
			t.Error("the run is gone, and its alert is open")
		}
	})
}
