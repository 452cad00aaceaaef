package watchdog_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/watchdog"
)

// A session file reports a moment before the hook that the agent asks. The alert waits for the text
// of the question.
func TestAlertWaitsForWords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		worker := w.add("a")
		w.change(worker, func() {
			observes(worker, agency.Evidence{Source: agency.FromSession, Signal: agency.SignalAsked, Kind: agency.AsksPermission, Text: "permission prompt"})
		})
		w.pass(watchdog.DetailTimeout / 3)
		w.want()
		w.change(worker, func() {
			observes(worker, agency.Evidence{Signal: agency.SignalAsked, ID: "1", Kind: agency.AsksPermission, Tool: "Bash", Text: "make"})
		})
		w.pass(time.Millisecond)
		w.want(agency.AlertNeedsInput)
		w.wantWords("may it use Bash? make")
	})
}

// A text that arrives later changes the alert, without a new alert or another notification.
func TestAlertTakesBetterWords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		worker := w.add("a")
		w.change(worker, func() {
			observes(worker, agency.Evidence{Source: agency.FromTitle, Signal: agency.SignalAsked, Kind: agency.AsksQuestion, Text: "it asks for something in its terminal"})
		})
		w.pass(2 * watchdog.DetailTimeout)
		w.want(agency.AlertNeedsInput)
		w.wantWords("it asks for something in its terminal")
		w.change(worker, func() {
			observes(worker, agency.Evidence{Source: agency.FromScreen, Event: agency.EventComplete, Signal: agency.SignalAsked, ID: "1", Kind: agency.AsksPermission, Tool: "Shell", Text: "make"})
		})
		w.pass(time.Second)
		w.want(agency.AlertNeedsInput)
		w.wantWords("may it use Shell? make")
		if payload := string(w.alert(0).Payload); !strings.Contains(payload, `"prompt_type":"permission"`) || !strings.Contains(payload, `"prompt_id":"1@`) {
			t.Errorf("got %s", payload)
		}
		w.wantNotified("a worker.needs_input 0")
	})
}

func (w *world) wantWords(want string) {
	w.t.Helper()
	if got := api.AlertText(w.alert(0).Payload); got != want {
		w.t.Errorf("the alert says %q, want %q", got, want)
	}
}
