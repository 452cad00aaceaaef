package supervisor_test

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"agency"
)

// The hooks of two subagents arrive in another order than the terminal shows their dialogs. The run
// waits for the dialog that is shown; after its answer, for the other one.
func TestTerminalOrdersRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, p := w.started("fix-login")
		tell := func(evidence ...agency.Evidence) {
			w.tell(p, evidence...)
			w.watcher.hints <- filepath.Join(p.dir, agency.EventsFile)
			synctest.Wait()
		}
		asks := func(text string) agency.Evidence {
			return agency.Evidence{Signal: agency.SignalAsked, ID: text, Subagent: "of " + text, Kind: agency.AsksPermission, Tool: "Bash", Text: text}
		}
		waitsFor := func(want string) {
			t.Helper()
			got := w.sup.Observer.Derive(w.run(r.ID)).Request
			if got == nil || got.Text != want {
				t.Errorf("it waits for %+v, want %s", got, want)
			}
		}
		w.tmux.show("make two")
		tell(asks("make one"), asks("make two"))
		waitsFor("make one")
		time.Sleep(time.Second)
		waitsFor("make two")
		tell(agency.Evidence{Signal: agency.SignalToolEnded, ID: "make two"})
		waitsFor("make one")
		w.tmux.show("make one")
		tell(asks("make three"))
		time.Sleep(time.Second)
		waitsFor("make one")
		w.tmux.show("make three")
		if _, _, err := w.sup.Input.Answer(t.Context(), allow(r, "")); codeOf(err) != agency.CodeInvalidState {
			t.Errorf("an answer that types nothing: %v", err)
		}
		waitsFor("make three")
	})
}
