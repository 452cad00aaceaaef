package crash_test

import (
	"path/filepath"
	"testing"
)

// A process that starts another one and ends while the daemon reads the list of processes is not in
// that list, and neither is the other one, which is found all the same.
func TestAgentThatEndsWhileItIsLookedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("run", "--name", "target", "--headless", "--prompt", "write work.txt precious\nwait-file go\nchild")
	r := w.target()
	agent := w.marked(r.ID)
	w.write("killpoint", "processes.named hold")
	w.kill(w.wrapper(r.ID))
	w.awaitHit("processes.named")
	if touched := w.f.Command("", "touch", filepath.Join(r.Worktree, "go")); touched.Exit != 0 {
		t.Fatal(touched.Stderr)
	}
	w.awaitDeath(agent)
	w.release()
	w.calm(false)
}
