package watchdog_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agency"
	"agency/internal/status"
)

// fails adds calls of the model that failed and are repeated.
func fails(worker *worker, times int) {
	status.Observe(&worker.run.Attempt.AgentState, agency.Evidence{
		At: time.Now(), Source: agency.FromHook, Signal: agency.SignalRetrying, Class: agency.ErrorNetwork, Text: fmt.Sprintf("ended early %d times", times),
	})
}

// goesOn adds a call that succeeded.
func goesOn(worker *worker) {
	status.Observe(&worker.run.Attempt.AgentState, agency.Evidence{At: time.Now(), Source: agency.FromHook, Signal: agency.SignalBusy})
}

// A worker whose model fails again and again shows activity without progress: that is one alert,
// after the usual timeout.
func TestRetryingWithoutEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		worker := w.add("a")
		w.change(worker, func() { goesOn(worker) })
		for times := 1; times < 60; times++ {
			w.change(worker, func() { fails(worker, times); worker.output = time.Now() })
			w.pass(stall / 60)
		}
		w.want()
		w.pass(stall / 60)
		w.want(agency.AlertStuck)
		var payload struct {
			Class   agency.ErrorClass `json:"error_class"`
			Context string            `json:"error_context"`
			Seconds int               `json:"duration_secs"`
		}
		if err := json.Unmarshal(w.alert(0).Payload, &payload); err != nil || payload.Class != agency.ErrorNetwork || payload.Context != "ended early 59 times" || payload.Seconds < int(stall.Seconds()) {
			t.Errorf("%+v, %v", payload, err)
		}
		verdict, err := w.dog.Explain(t.Context(), worker.run.ID)
		if why := verdict.Rules[len(verdict.Rules)-1].Why; err != nil || !strings.Contains(why, "it has been trying again for") {
			t.Errorf("%q, %v", why, err)
		}
		// More failures, and a new daemon, send no other notification.
		w.change(worker, func() { fails(worker, 128) })
		w.restart()
		w.want(agency.AlertStuck)
		if w.open() != 1 {
			t.Error("it is over")
		}
		w.change(worker, func() { goesOn(worker) })
		if w.open() != 0 {
			t.Error("it goes on, and the alert is open")
		}
		w.change(worker, func() { fails(worker, 1) })
		w.pass(stall - time.Second)
		w.want(agency.AlertStuck)
	})
}

// A failure that passes in time makes no alert.
func TestRetryingThatPasses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		worker := w.add("a")
		for range 5 {
			w.change(worker, func() { goesOn(worker); fails(worker, 1) })
			w.pass(stall / 2)
		}
		w.want()
	})
}
