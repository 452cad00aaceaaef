package crash_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A wrapper that gets to its agent while the next daemon looks for it goes on under that daemon.
func TestRecoveryOfAStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hold("wrapper.begun", "run", "--name", "target", "--prompt", asks)
	pids := w.daemons()
	w.kill(pids)
	w.awaitDeath(pids)
	w.awaitClient()

	// The next daemon stands between its look at the wrapper and what it makes of it.
	w.write("killpoint", "settle.unseen hold")
	w.start([]string{"ls"})
	w.await("the next daemon", func() bool { _, err := os.Lstat(w.path("killpoint")); return err != nil })
	for _, pid := range w.daemons() {
		w.suspend(pid)
	}
	w.release() // of the wrapper, too
	started := filepath.Join(w.f.Data, "runs", w.newest(), "attempts", "1", "started.json")
	w.await("the agent", func() bool { _, err := os.Lstat(started); return err == nil })
	for _, pid := range w.daemons() {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
	w.awaitClient()
	if wrong := w.rest(false); len(wrong) > 0 {
		t.Fatal(strings.Join(wrong, "\n"))
	}
	if r := w.target(); r == nil || r.State != "running" {
		t.Errorf("it is %+v", r)
	}
	w.must("stop", "target")
	w.must("rm", "target")
}

// suspend stops a process, and returns when it stands still.
func (w *world) suspend(pid int) {
	w.t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		w.t.Fatal(err)
	}
	w.await("a suspended process", func() bool {
		stat, _ := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), "stat"))
		_, state, _ := strings.Cut(string(stat), ") ")
		return strings.HasPrefix(state, "T")
	})
}

// A daemon that is killed while it starts costs a command nothing but time.
func TestDaemonStartKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, command := range [][]string{
		{"ls"}, {"wait", "other", "--for", "needs-input", "--timeout", "60s"}, {"run", "--name", "target", "--prompt", asks}, {"logs", "other"},
	} {
		w.must("daemon", "stop")
		w.write("killpoint", "daemon.listening")
		if r := w.f.Agency(command...); r.Exit != 0 {
			t.Errorf("agency %v: exit %d: %s", command, r.Exit, r.Stderr)
		}
		if err := os.Remove(w.path("killpoint.hit")); err != nil {
			t.Error(err)
		}
	}

	// What cannot be found out is no failed run.
	w.must("daemon", "stop")
	if err := os.WriteFile(filepath.Join(w.f.Data, "agency.db"), []byte("no database"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := w.f.Agency("wait", "other", "--timeout", "5s"); r.Exit != 6 {
		t.Errorf("wait: exit %d: %s", r.Exit, r.Stderr)
	}
	if r := w.f.Agency("ls"); r.Exit != 1 {
		t.Errorf("ls: exit %d: %s", r.Exit, r.Stderr)
	}
}

// A suspended daemon is told of in the time that is named.
func TestSuspendedDaemon(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pids := w.daemons()
	w.suspend(pids[0])
	r := w.f.Agency("ls")
	if want := fmt.Sprintf("kill -CONT %d", pids[0]); r.Exit != 6 || !strings.Contains(r.Stderr, "has not answered for 15s") || !strings.Contains(r.Stderr, want) {
		t.Errorf("ls: exit %d: %s", r.Exit, r.Stderr)
	}
	if err := syscall.Kill(pids[0], syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	w.must("ls")
}
