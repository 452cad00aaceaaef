package crash_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"agency/test/fixture"
)

// A wrapper of a later attempt starts its agent without a daemon. When it does so while the next
// daemon looks for it, it continues under that daemon.
func TestRecoveryOfAStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stoppedTarget(w)
	id := w.target().ID
	w.hold("wrapper.begun", "resume", "--fresh", "target")
	w.killDaemons()
	w.awaitClient()

	// The next daemon is held between its look at the wrapper and the decision.
	w.write("killpoint", "settle.unseen hold")
	w.start([]string{"ls"})
	w.await("the next daemon", func() bool { _, err := os.Lstat(w.path("killpoint")); return err != nil })
	for _, pid := range w.daemons() {
		w.suspend(pid)
	}
	w.release() // of the wrapper, too
	started := filepath.Join(w.f.Data, "runs", id, "attempts", "2", "started.json")
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

// An agent whose daemon was killed before it had recorded the terminal still gets messages.
func TestRecoveryOfATerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hold("create.session.made", "run", "--name", "target", "--prompt", asks)
	w.killDaemons()
	w.awaitClient()
	w.must("wait", "target", "--for", "needs-input", "--timeout", "20s")
	w.must("send", "target", "go on")
	w.must("wait", "target")
	w.calm(false)
}

// suspend stops a process, and returns when all of it is stopped.
func (w *folder) suspend(pid int) {
	w.t.Helper()
	if err := fixture.Suspend(pid); err != nil {
		w.t.Fatal(err)
	}
}

// A daemon that is killed while it starts costs a command only time.
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

	// A fact that cannot be determined does not make a run failed.
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

// A suspended daemon is reported within the documented time, whatever was requested, and nothing
// happens that was not requested.
func TestSuspendedDaemon(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pid := w.daemons()[0]
	w.suspend(pid)
	var clients sync.WaitGroup
	for _, args := range [][]string{
		{"ls"},
		{"ls", "--watch"},
		{"events", "-f"},
		{"logs", "-f", "other"},
		{"alerts", "-f"},
		{"wait", "other"},
		{"session", "wait", "active"},
		{"diff", "other"},
		{"run", "--name", "more", "--prompt", asks},
		{"stop", "other"},
		{"rm", "other"},
		{"send", "other", "hello"},
		{"answer", "other", "1"},
		{"tags", "add", "other", "red"},
		{"snapshot", "other"},
		{"gc"},
		{"db", "backup", w.path("backup.db")},
		{"session", "update", "s_1", "-"},
	} {
		clients.Go(func() {
			r := w.f.Agency(args...)
			if r.Exit != 6 || !strings.Contains(r.Stderr, "has not answered for 15s") || !strings.Contains(r.Stderr, fmt.Sprintf("kill -CONT %d", pid)) {
				t.Errorf("%v: exit %d: %s", args, r.Exit, r.Stderr)
			}
		})
	}
	clients.Wait()
	w.wake(pid)
	if events := w.must("events", "--run", "other"); w.run("other").State != "running" || w.f.Agency("show", "more").Exit != 3 || strings.Contains(events, "tag") {
		t.Errorf("it did what it was not asked for: %s", events)
	}
}

// An operation in progress, a wait and clients that follow end when their daemon is suspended. The
// error names the outcome as open, and the operation is completed when the daemon continues.
func TestSuspendedInTheMiddle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	runTarget(w)
	pid := w.daemons()[0]
	var clients sync.WaitGroup
	for _, args := range []string{"events -f", "logs -f other", "wait other --for completed", "alerts -f", "ls --watch"} {
		clients.Go(func() {
			r := w.f.Agency(strings.Fields(args)...)
			if r.Exit != 6 || !strings.Contains(r.Stderr, "has not answered for 15s") {
				t.Errorf("%s: exit %d: %s", args, r.Exit, r.Stderr)
			}
		})
	}
	w.hold("stop.intended", "stop", "target")
	w.suspend(pid)
	w.awaitClient()
	if said := w.said(); w.process.ProcessState.ExitCode() != 6 || !strings.Contains(said, "the request may be done already, or be done") {
		t.Errorf("exit %d: %s", w.process.ProcessState.ExitCode(), said)
	}
	clients.Wait()
	w.wake(pid)
	w.release()
	w.await("the end of the agent", func() bool { return w.target().State == "killed" })
	w.must("rm", "target")
}

func (w *folder) wake(pid int) {
	w.t.Helper()
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		w.t.Fatal(err)
	}
}

// A wrapper that is killed before it holds its lock is noticed at once, by its pane, and not by the
// time that it does not answer.
func TestWrapperKilledBeforeItsLock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hold("wrapper.begun", "run", "--name", "target", "--prompt", asks)
	w.kill(w.wrapper(w.newest()))
	w.awaitClient()
	if !strings.Contains(w.said(), "[E_START_CUT_OFF]") {
		t.Errorf("run said: %s", w.said())
	}
	w.calm(false)
	w.must("run", "--name", "target", "--prompt", asks)
}
