package crash_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A wrapper that is suspended is not dead: its run is shown as running, state.json says that it moves no more, and it can be
// stopped. A heartbeat makes no ended attempt alive.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.f.Env = append(w.f.Env, "AGENCY_WATCHDOG_POLL_INTERVAL=1")
	w.must("daemon", "stop")
	runTarget(w)
	r := w.target()
	beat := filepath.Join(r.Dir, "attempts", "1", "heartbeat")
	is := func(want string) {
		t.Helper()
		w.await("state.json to say "+want, func() bool {
			data, err := os.ReadFile(filepath.Join(r.Dir, "state.json"))
			var state struct {
				Status string    `json:"status"`
				Beat   time.Time `json:"last_heartbeat"`
			}
			info, statErr := os.Stat(beat)
			return err == nil && statErr == nil && json.Unmarshal(data, &state) == nil && state.Status == want && state.Beat.Equal(info.ModTime())
		})
	}
	signal := func(sig syscall.Signal) {
		for _, pid := range w.wrapper(r.ID) {
			if err := syscall.Kill(pid, sig); err != nil {
				t.Error(err)
			}
		}
	}
	age := func(by time.Duration) {
		t.Helper()
		if err := os.Chtimes(beat, time.Now(), time.Now().Add(-by)); err != nil {
			t.Fatal(err)
		}
	}
	is("ACTIVE")
	signal(syscall.SIGSTOP)
	age(2 * time.Minute)
	is("STALLED")
	if now := w.target(); now.State != "running" {
		t.Errorf("a suspended wrapper made it %s", now.State)
	}
	signal(syscall.SIGCONT)
	is("ACTIVE")
	signal(syscall.SIGSTOP)
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
