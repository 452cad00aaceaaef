package terminal_test

import (
	"os"
	"path/filepath"
	"testing"

	"agency"
	"agency/test/fixture"
)

// A user's configuration of tmux is for that user's own sessions: runs survive it, and their last
// output can be read.
func TestHarmfulSettings(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	settings := `
set -g assume-paste-time 0
set -g destroy-unattached on
set -g remain-on-exit off
set -g default-command 'exit 1'
set -g prefix C-a
set -g base-index 1
set -g pane-base-index 1
`
	if err := os.WriteFile(filepath.Join(f.Home, ".tmux.conf"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, f, echo)
	p := paneOf(t, f, r)
	if got := p.is("#{prefix}"); got != "C-a" {
		t.Fatalf("the settings do not hold: the prefix is %s", got)
	}
	c := agencyIn(t, f, 80, 24, "attach", r.Handle)
	c.shows("hello from the agent")
	c.types("\x01d")
	c.ends(0)
	if got := show(t, f, r).Run.State; got != agency.Running {
		t.Fatalf("after the detach the run is %s", got)
	}
	succeeds(t, f.Agency("send", r.Handle, "end"))
	completes(t, f, r)
	c = agencyIn(t, f, 80, 24, "attach", r.Handle)
	c.shows("got end")
	c.types("\x01d")
	c.ends(0)
	p.line("got end")
}
