package crash_test

import (
	"strings"
	"syscall"
	"testing"
)

// A daemon that is asked to stop ends, although a part of it hangs. The next daemon finishes the
// operation, and the log names what hung.
func TestStopOfADaemonThatHangs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	runTarget(w)
	r := w.target()
	w.write("killpoint", "settle.ended hold")
	for _, pid := range w.wrapper(r.ID) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	w.awaitHit("settle.ended")
	w.must("daemon", "stop")
	w.release()
	w.await("the run to be settled", func() bool { return w.target().State == "failed" })
	if log := w.log(); !strings.Contains(log, "the daemon does not stop") || !strings.Contains(log, ".lose(") {
		t.Errorf("the log does not say what hung:\n%s", log)
	}
}
