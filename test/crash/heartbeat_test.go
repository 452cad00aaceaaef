package crash_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"agency/test/fixture"
)

// stateIs waits until the state.json of a run has a status, and the time of a heartbeat.
func (w *processes) stateIs(dir, beat, want string) {
	w.t.Helper()
	w.await("state.json to say "+want, func() bool {
		data, err := os.ReadFile(filepath.Join(dir, "state.json"))
		var state struct {
			Status string    `json:"status"`
			Beat   time.Time `json:"last_heartbeat"`
		}
		info, statErr := os.Stat(beat)
		return err == nil && statErr == nil && json.Unmarshal(data, &state) == nil && state.Status == want && state.Beat.Equal(info.ModTime())
	})
}

// A suspended wrapper is not dead: its run stays running, and its status shows that nothing is
// known until the wrapper continues. A heartbeat does not revive an ended attempt.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.f.Env = append(w.f.Env, "AGENCY_WATCHDOG_POLL_INTERVAL=1")
	w.must("daemon", "stop")
	runTarget(w)
	r := w.target()
	beat := filepath.Join(r.Dir, "attempts", "1", "wrapper", "heartbeat")
	is := func(want string) { t.Helper(); w.stateIs(r.Dir, beat, want) }
	age := func(by time.Duration) {
		t.Helper()
		if err := os.Chtimes(beat, time.Now(), time.Now().Add(-by)); err != nil {
			t.Fatal(err)
		}
	}
	is("ACTIVE")
	// The server is suspended first, because tmux continues every stopped process in its panes. For
	// the same reason the server's own end of suspension wakes the wrapper.
	server := w.tmuxServer()
	for _, pid := range append(server, w.wrapper(r.ID)...) {
		if err := fixture.Suspend(pid); err != nil {
			t.Fatal(err)
		}
	}
	age(2 * time.Minute)
	is("STALLED")
	if now := w.target(); now.State != "running" {
		t.Errorf("a suspended wrapper made it %s", now.State)
	}
	for _, command := range []string{"ls", "show", "explain"} {
		args := []string{command, "target"}
		if command == "ls" {
			args = args[:1]
		}
		if out := w.must(args...); !strings.Contains(out, "its wrapper does not answer") {
			t.Errorf("%s says\n%s", command, out)
		}
	}
	for _, pid := range server {
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
	is("ACTIVE")
	w.must("stop", "target")
	if now := w.target(); now.State != "killed" {
		t.Errorf("a stop made it %s", now.State)
	}
	w.must("daemon", "stop")
	age(0)
	w.must("daemon", "start")
	if now := w.target(); now.State != "killed" {
		t.Errorf("a heartbeat made it %s", now.State)
	}
	w.must("rm", "target")
	w.calm(false)
}
