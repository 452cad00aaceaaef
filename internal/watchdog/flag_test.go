package watchdog_test

import (
	"testing"
	"testing/synctest"
	"time"

	"agency"
)

// A flag that was removed and set again, for the same reason, is another episode. A flag that stays
// is the same episode, also after another question of the worker was answered.
func TestFlaggedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		worker := w.add("a")
		set := func(f *agency.Flag) { w.change(worker, func() { worker.run.Flag = f }); w.pass(time.Second) }
		flag := &agency.Flag{Reason: "tests fail", At: time.Now()}
		set(flag)
		w.restart()
		set(flag)
		w.want(agency.AlertNeedsInput)
		w.change(worker, func() { asks(&worker.run, "Which?") })
		w.want(agency.AlertNeedsInput, agency.AlertNeedsInput)
		w.pass(time.Second)
		w.change(worker, func() { worker.run.Attempt.InputAt = new(time.Now()) })
		w.want(agency.AlertNeedsInput, agency.AlertNeedsInput)
		if first, second := w.alert(0), w.alert(1); !first.Open() || second.Open() {
			t.Errorf("after the answer: %+v, %+v", first, second)
		}
		set(nil)
		set(&agency.Flag{Reason: "tests fail", At: time.Now()})
		w.want(agency.AlertNeedsInput, agency.AlertNeedsInput, agency.AlertNeedsInput)
	})
}
