package crash_test

import (
	"strings"
	"testing"
)

var commentPoints = []string{"comments.sending", "comments.delivered"}

// A daemon that is killed while it sends comments never sends them twice by itself, and says which
// may have reached the agent.
func TestCutOffComments(t *testing.T) {
	t.Parallel()
	for typed, point := range commentPoints { // how many messages the agent has before the kill
		w := newWorld(t)
		w.must("run", "--name", "target", "--runner", "shell", "--prompt", "echo mine >a.txt; echo made\nwhile read -r line; do echo \"got $line\"; done")
		logs := func(text string) int { return strings.Count(w.must("logs", "target"), text) }
		w.await("the work", func() bool { return logs("made") > 0 })
		w.must("review", "target", "--comment", "a.txt:1=why?")
		w.hold(point, "review", "target", "--send")
		w.killDaemons()
		w.awaitClient()
		if out := w.must("review", "target"); !strings.Contains(out, "a.txt:1: why? (may have reached the agent)") {
			t.Errorf("%s: %s", point, out)
		}
		if r := w.f.Agency("review", "target", "--send"); r.Exit == 0 || !strings.Contains(r.Stderr, "1 comment of target may have reached the agent") {
			t.Errorf("%s: exit %d: %s%s", point, r.Exit, r.Stdout, r.Stderr)
		}
		w.await("the agent to read", func() bool { return logs("got why?") == typed })
		w.must("review", "target", "--send", "--again")
		w.await("the agent to read", func() bool { return logs("got why?") == typed+1 })
		if out := w.must("review", "target"); !strings.Contains(out, "a.txt:1: why? (sent)") {
			t.Errorf("%s: %s", point, out)
		}
	}
}
