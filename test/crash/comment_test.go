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

// A wrapper that is killed while it gives comments to an agent in its own protocol leaves them to the next
// one. The comments are never sent as another message by themselves.
func TestCommentsOfAKilledWrapper(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"speech.intended", "speech.written"} {
		w := newWorld(t)
		useProtocol(w)
		restTarget(w)
		w.must("review", "target", "--comment", "work.txt:1=why?")
		w.hold(point, "review", "target", "--send")
		pids := w.wrapper(w.target().ID)
		w.kill(pids)
		w.awaitDeath(pids)
		w.awaitClient()
		if said := w.said(); !strings.Contains(said, "went away before it answered, and the agent may have got it") {
			t.Errorf("%s: %s", point, said)
		}
		if out := w.must("review", "target"); !strings.Contains(out, "work.txt:1: why? (may have reached the agent)") {
			t.Errorf("%s: %s", point, out)
		}
		if r := w.f.Agency("review", "target", "--send"); r.Exit == 0 || !strings.Contains(r.Stderr, "1 comment of target may have reached the agent") {
			t.Errorf("%s: exit %d: %s%s", point, r.Exit, r.Stdout, r.Stderr)
		}
		heard := func() int { return strings.Count(strings.Join(heardBy(w.target()), "\n"), "message ") }
		w.await("the next wrapper to say it", func() bool { return heard() == 2 }) // the task, and the comments
	}
}
