package watchdog_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agency"
	"agency/internal/status"
)

// Lines that match an error pattern are one alert, however often they are printed. It ends when the
// worker continues for a while, or gets a message; then another line is another alert.
func TestPrintedError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		worker := w.add("a")
		says := func() { w.change(worker, func() { worker.output = time.Now() }) }
		w.change(worker, func() { printsError(worker, "error: quota") })
		w.want(agency.AlertError)
		var payload struct {
			Context string            `json:"error_context"`
			Class   agency.ErrorClass `json:"error_class"`
		}
		a := w.alert(0)
		if err := json.Unmarshal(a.Payload, &payload); err != nil || payload.Context != "error: quota" || payload.Class != agency.ErrorOutput {
			t.Errorf("%s: %v", a.Payload, err)
		}
		verdict, err := w.dog.Explain(t.Context(), worker.run.ID)
		if err != nil || !strings.Contains(verdict.Rules[1].Why, `printed "error: quota" `) || !verdict.Rules[1].Holds {
			t.Errorf("%+v, %v", verdict.Rules, err)
		}
		// Inactivity and repetition change nothing, nor does work right after the line.
		for range 3 {
			w.pass(status.PrintedTimeout - time.Second)
			w.change(worker, func() { printsError(worker, "error: quota") })
		}
		w.pass(status.PrintedTimeout - time.Second)
		says()
		w.restart()
		w.want(agency.AlertError)
		if w.open() != 1 {
			t.Error("it is over")
		}
		// The worker continues: a look at the next interval finds that, though output makes no
		// event.
		w.pass(2 * time.Second)
		w.mu.Lock()
		worker.output = time.Now()
		w.mu.Unlock()
		w.pass(poll)
		if w.open() != 0 {
			t.Error("it goes on, and the alert is open")
		}
		w.restart()
		w.want(agency.AlertError)
		w.change(worker, func() { printsError(worker, "error: again") })
		w.want(agency.AlertError, agency.AlertError)
	})
}

// A message or a prompt ends the alert of a printed error.
func TestPrintedErrorIsAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		worker := w.add("a")
		w.change(worker, func() { printsError(worker, "error: quota") })
		w.want(agency.AlertError)
		w.pass(time.Second)
		w.change(worker, func() { now := time.Now(); worker.run.Attempt.InputAt = &now })
		if w.open() != 0 {
			t.Error("it was written to, and the alert is open")
		}
		w.pass(time.Second)
		w.change(worker, func() { printsError(worker, "error: again") })
		w.want(agency.AlertError, agency.AlertError)
		w.change(worker, func() {
			status.Observe(&worker.run.Attempt.AgentState, agency.Evidence{At: time.Now(), Source: agency.FromHook, Signal: agency.SignalPrompt})
		})
		if w.open() != 0 {
			t.Error("a new turn began, and the alert is open")
		}
	})
}

// The agent's own reports rank before its printed errors.
func TestPrintedErrorComesLast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		worker := w.add("a")
		w.change(worker, func() { asks(&worker.run, "Which?") })
		w.change(worker, func() { printsError(worker, "error: quota") })
		w.want(agency.AlertNeedsInput)
		verdict, _ := w.dog.Explain(t.Context(), worker.run.ID)
		if why := verdict.Rules[1].Why; verdict.Rules[1].Holds || !strings.Contains(why, "nothing newer follows it") {
			t.Error(why)
		}
		w.change(worker, func() { works(&worker.run) })
		w.want(agency.AlertNeedsInput, agency.AlertError)
		w.change(worker, func() { ends(&worker.run, agency.Completed, "") })
		w.want(agency.AlertNeedsInput, agency.AlertError, agency.AlertComplete)
	})
}
