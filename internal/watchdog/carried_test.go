package watchdog_test

import (
	"testing"
	"testing/synctest"
	"time"

	"agency"
)

// What an agent offered in one attempt and still offers in the next is told once, also when the attempts
// follow each other at once.
func TestCarriedOffer(t *testing.T) {
	t.Parallel()
	for _, stopped := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			worker := w.add("one")
			offer := agency.Contract{Status: agency.ReportedReadyForReview, Summary: "done"}
			w.change(worker, func() { worker.run.Attempt.Reported = agency.Observed{Contract: &offer, At: time.Now()} })
			w.want(agency.AlertComplete)
			w.pass(time.Second)
			if stopped {
				w.change(worker, func() { ends(&worker.run, agency.Killed, "") })
			}
			w.change(worker, func() {
				before, now := worker.run.Attempt, time.Now()
				worker.run.Attempt = agency.Attempt{Number: 2, State: agency.Running, CreatedAt: now, StartedAt: &now, Reported: before.Reported}
			})
			w.want(agency.AlertComplete)
			if told := w.notifications(); len(told) != 1 || w.open() != 1 {
				t.Errorf("stopped %t: told %q, %d open", stopped, told, w.open())
			}
			w.change(worker, func() { worker.run.Attempt.Reported.At = time.Now().Add(time.Second) }) // it offers again
			w.want(agency.AlertComplete, agency.AlertComplete)
		})
	}
}
