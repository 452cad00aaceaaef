package watchdog_test

import (
	"testing"
	"testing/synctest"
	"time"

	"agency"
)

// A question that only hid behind a permission dialog is open again when that was answered. It is the same alert: it is not told
// again at once, but goes on up from where it was.
func TestHiddenQuestion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		worker := w.add("a")
		w.change(worker, func() { asks(&worker.run, "Which?") })
		w.pass(time.Minute)
		w.change(worker, func() {
			observes(worker, agency.Evidence{Sign: agency.SignAsked, Kind: agency.AsksPermission, ID: "1"})
		})
		w.want(agency.AlertNeedsInput, agency.AlertNeedsInput)
		if question := w.alert(0); question.Open() {
			t.Error("both are open")
		}
		told := len(w.tellings())
		w.change(worker, func() { observes(worker, agency.Evidence{Sign: agency.SignAnswered, ID: "1"}) })
		w.want(agency.AlertNeedsInput, agency.AlertNeedsInput)
		if question := w.alert(0); !question.Open() || w.open() != 1 {
			t.Errorf("%d are open, the question is %v", w.open(), question.Open())
		}
		w.restart()
		if got := len(w.tellings()); got != told {
			t.Errorf("told %d times, want %d", got, told)
		}
		w.pass(4 * time.Minute)
		if question := w.alert(0); question.Told != 2 || question.Level != 1 {
			t.Errorf("after five minutes it was told %d times, up to level %d", question.Told, question.Level)
		}
	})
}
