package watchdog_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agency"
	"agency/internal/watchdog"
)

// queue gives the worker an entry of a landing queue, or changes the one that it has.
func (w *record) queue(worker *worker, state agency.QueueState, asked agency.Asked, held agency.HeldFor) {
	w.change(worker, func() {
		w.entries = slices.DeleteFunc(w.entries, func(e agency.QueueEntry) bool { return e.RunID == worker.run.ID })
		w.entries = append(w.entries, agency.QueueEntry{
			Seq: 7, RunID: worker.run.ID, Target: "main", State: state, Asked: asked, HeldFor: held, Reason: "why", ChangedAt: time.Now(),
		})
	})
}

// finish ends the worker's agent.
func (w *world) finish(worker *worker) {
	w.change(worker, func() {
		now := time.Now()
		worker.run.Attempt.State, worker.run.Attempt.EndedAt = agency.Completed, &now
	})
}

// openKinds returns the kinds of the open alerts.
func (w *record) openKinds() []agency.AlertKind {
	w.mu.Lock()
	defer w.mu.Unlock()
	kinds := []agency.AlertKind{}
	for i := range w.alerts {
		if w.alerts[i].Open() {
			kinds = append(kinds, w.alerts[i].Kind)
		}
	}
	return kinds
}

func (w *world) wantKinds(when string, want ...agency.AlertKind) {
	w.t.Helper()
	if got := w.openKinds(); !slices.Equal(got, want) {
		w.t.Errorf("%s: open are %v, want %v", when, got, want)
	}
}

// A conflict is the agent's until it rests without having solved it, or cannot be asked.
func TestLandingConflict(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		login := w.add("login")
		w.finish(login)
		w.wantKinds("its agent is done", agency.AlertComplete)
		w.queue(login, agency.EntryQueued, "", "")
		w.wantKinds("it is queued")
		w.queue(login, agency.EntryConflict, agency.AskedNot, "")
		w.pass(time.Hour)
		w.wantKinds("the queue is about to ask")
		w.queue(login, agency.EntryConflict, agency.AskedResume, "")
		w.wantKinds("its agent was asked")
		w.pass(watchdog.TurnEndedTimeout)
		w.wantKinds("its agent did nothing", agency.AlertLandingConflict)
		w.restart()
		w.wantKinds("after a restart", agency.AlertLandingConflict)
		w.queue(login, agency.EntryQueued, "", "")
		w.wantKinds("it goes on")
		w.queue(login, agency.EntryConflict, agency.AskedUser, "")
		w.wantKinds("its agent cannot be asked", agency.AlertLandingConflict)
		w.queue(login, agency.EntryFixing, agency.AskedResume, "")
		w.wantKinds("its agent was asked to fix it")
		w.pass(watchdog.TurnEndedTimeout)
		w.wantKinds("its agent fixed nothing", agency.AlertLandingFailed)
		w.queue(login, agency.EntryDropped, "", "")
		w.wantKinds("it is removed", agency.AlertComplete)
		if got := w.kinds(); len(got) != 4 {
			t.Errorf("alerts: %v", got)
		}
	})
}

// The user who removes a run knows of its entry as it is then. What becomes of it later is an
// alert.
func TestLandingOfRemoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		login := w.add("login")
		w.finish(login)
		w.queue(login, agency.EntryConflict, agency.AskedUser, "")
		w.wantKinds("its agent cannot be asked", agency.AlertLandingConflict)
		w.pass(time.Second)
		w.change(login, func() { login.run.RemovedAt = new(time.Now()) })
		w.wantKinds("it is removed")
		w.pass(time.Second)
		w.queue(login, agency.EntryQueued, "", "")
		w.queue(login, agency.EntryConflict, agency.AskedUser, "")
		w.wantKinds("it conflicts again", agency.AlertLandingConflict)
		w.queue(login, agency.EntryDropped, agency.AskedRun, "")
		w.wantKinds("a new run goes on")
	})
}

// A branch that is gone is one alert, of one of the runs that wait for it. When that run leaves the
// queue, another one has it.
func TestLandingWithoutBranch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		one, other := w.add("one"), w.add("other")
		for _, worker := range []*worker{one, other} {
			w.finish(worker)
			w.queue(worker, agency.EntryHeld, "", agency.HeldForTarget)
		}
		w.pass(time.Hour)
		w.wantKinds("the branch is gone", agency.AlertLandingHeld)
		w.change(one, func() { one.run.Abandoned = true })
		w.pass(poll)
		if last := w.notified[len(w.notified)-1]; last != "other landing.held 2" {
			t.Errorf("the first run was abandoned: %s", last)
		}
		w.queue(other, agency.EntryQueued, "", "")
		w.wantKinds("the branch is there again")
	})
}

// What keeps a whole queue waiting is one alert, a minute after it began, unless the user paused the
// queue.
func TestLandingWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for _, name := range []string{"one", "other"} {
			worker := w.add(name)
			w.finish(worker)
			w.queue(worker, agency.EntryQueued, "", "")
		}
		note := func(note string, paused bool) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.line.Note, w.line.Paused = note, paused
		}
		note(".env is in the way", false)
		w.pass(watchdog.TurnEndedTimeout / 2)
		w.wantKinds("it has just begun")
		w.pass(time.Hour)
		w.wantKinds("the queue waits", agency.AlertLandingHeld)
		if text := string(w.alerts[len(w.alerts)-1].Payload); !strings.Contains(text, `"text":".env is in the way"`) {
			t.Errorf("the alert is %s", text)
		}
		note("", false)
		w.pass(poll)
		w.wantKinds("it goes on")
		note("paused", true)
		w.pass(time.Hour)
		w.wantKinds("the user paused it")
	})
}

func TestLandingHeldAndFailed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		login := w.add("login")
		w.finish(login)
		w.queue(login, agency.EntryHeld, "", agency.HeldByHand)
		w.wantKinds("the user held it")
		w.queue(login, agency.EntryHeld, "", agency.HeldForApproval)
		w.wantKinds("it needs approval", agency.AlertLandingHeld)
		if last := w.notified[len(w.notified)-1]; last != "login landing.held 2" {
			t.Errorf("the first notification: %s", last)
		}
		w.queue(login, agency.EntryQueued, "", "")
		w.wantKinds("it is approved")
		w.change(login, func() { login.run.Flag = &agency.Flag{Reason: "red", By: agency.FlaggedByChecks, At: time.Now()} })
		w.wantKinds("the queue is about to say that it failed")
		w.queue(login, agency.EntryFailed, "", "")
		w.wantKinds("it failed", agency.AlertLandingFailed)
		w.pass(5 * time.Minute)
		if last := w.notified[len(w.notified)-1]; last != "login landing.failed 1" {
			t.Errorf("the reminder: %s", last)
		}
		w.change(login, func() { login.run.Abandoned = true })
		w.wantKinds("it is abandoned")
	})
}

// Without a clock: each entry has one condition at most, and only the newest of a branch counts.
func TestLandingAlarms(t *testing.T) {
	t.Parallel()
	r := &agency.Run{Name: "login", Attempt: agency.Attempt{State: agency.Completed}, Flag: &agency.Flag{}}
	failed := agency.QueueEntry{Seq: 1, Target: "main", State: agency.EntryFailed}
	held := agency.QueueEntry{Seq: 2, Target: "next", State: agency.EntryHeld, HeldFor: agency.HeldForWork}
	gone := agency.QueueEntry{Seq: 2, Target: "next", State: agency.EntryHeld, HeldFor: agency.HeldForTarget}
	again := agency.QueueEntry{Seq: 3, Target: "main", State: agency.EntryChecking}
	for _, c := range []struct {
		name    string
		entries []agency.QueueEntry
		want    []string
	}{
		{"failed", []agency.QueueEntry{failed}, []string{"agency queue retry login"}},
		{"failed there, held here", []agency.QueueEntry{failed, held}, []string{"agency queue retry login", "agency queue resume login"}},
		{"the branch is gone", []agency.QueueEntry{gone}, []string{"agency queue explain login"}},
		{"added again", []agency.QueueEntry{failed, held, again}, []string{"agency queue resume login"}},
	} {
		got := []string{}
		for _, condition := range watchdog.LandingAlarms(r, agency.Status{}, c.entries) {
			got = append(got, condition.Command)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func (w *record) QueueEntries(_ context.Context, f agency.QueueFilter) ([]agency.QueueEntry, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.entries), func(e agency.QueueEntry) bool { return f.Run != "" && e.RunID != f.Run }), nil
}

func (w *record) Queue(context.Context, agency.QueueRef) (*agency.Queue, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := w.line
	return &q, nil
}
