package watchdog_test

import (
	"testing"
	"testing/synctest"
	"time"

	"agency"
)

// A question that was hidden by a permission dialog is open again after the answer to the dialog.
// It is the same alert: it is not repeated at once, and its escalation continues.
func TestHiddenQuestion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		worker := w.add("a")
		w.change(worker, func() { asks(&worker.run, "Which?") })
		w.pass(time.Minute)
		w.change(worker, func() {
			observes(worker, agency.Evidence{Signal: agency.SignalAsked, Kind: agency.AsksPermission, ID: "1"})
		})
		w.want(agency.AlertNeedsInput, agency.AlertNeedsInput)
		if question := w.alert(0); question.Open() {
			t.Error("both are open")
		}
		notified := len(w.notifications())
		w.change(worker, func() { observes(worker, agency.Evidence{Signal: agency.SignalAnswered, ID: "1"}) })
		w.want(agency.AlertNeedsInput, agency.AlertNeedsInput)
		if question := w.alert(0); !question.Open() || w.open() != 1 {
			t.Errorf("%d are open, the question is %v", w.open(), question.Open())
		}
		w.restart()
		if got := len(w.notifications()); got != notified {
			t.Errorf("notified %d times, want %d", got, notified)
		}
		w.pass(4 * time.Minute)
		if question := w.alert(0); question.NotifyCount != 2 || question.Level != 1 {
			t.Errorf("after five minutes it was notified %d times, up to level %d", question.NotifyCount, question.Level)
		}
	})
}

// The end of a worker makes an alert, also when no daemon saw it and the attempt had an alert
// before: a permission that was answered long ago.
func TestUnseenEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		worker := w.add("a")
		w.change(worker, func() {
			observes(worker, agency.Evidence{Signal: agency.SignalAsked, Kind: agency.AsksPermission, ID: "1"})
		})
		w.change(worker, func() { observes(worker, agency.Evidence{Signal: agency.SignalAnswered, ID: "1"}) })
		w.dog.Stop()
		w.change(worker, func() { ends(&worker.run, agency.Failed, "") })
		w.start()
		w.want(agency.AlertNeedsInput, agency.AlertError)
		w.wantNotified("a worker.needs_input 0", "a worker.error 0")
		w.restart()
		w.wantNotified("a worker.needs_input 0", "a worker.error 0")
	})
}

// The set of watched workers may change for a while by mistake. The end of a worker that is watched
// again is open again, without another notification.
func TestUnwatchedForAWhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		worker := w.add("a")
		w.change(worker, func() { ends(&worker.run, agency.Failed, "") })
		w.wantOpen(1)
		mistaken := w.settings()
		mistaken.WorkerTags = []string{"wroker"}
		w.dog.Set(mistaken)
		w.wantOpen(0)
		w.dog.Set(w.settings())
		w.wantOpen(1)
		w.want(agency.AlertError)
		w.wantNotified("a worker.error 0")
	})
}

// A worker that hung while a user looked at its terminal, and has moved since, is not stuck when
// the user detaches.
func TestMovedWhileLookedAt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		worker := w.add("a")
		attach := func(attached bool) {
			w.mu.Lock()
			worker.attached = attached
			w.mu.Unlock()
		}
		attach(true)
		w.pass(3 * poll)
		attach(false)
		w.pass(time.Second)
		w.change(worker, func() { worker.activity.FilesAt = time.Now() })
		w.pass(3*poll - time.Second)
		w.want()
		w.pass(2 * poll)
		w.want(agency.AlertStuck)
	})
}
