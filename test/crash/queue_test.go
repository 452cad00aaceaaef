package crash_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// queuePoints are the points where the work on a landing queue can be interrupted, in the order in
// which it reaches them.
var queuePoints = []string{"queue.checked", "queue.landing", "land.recorded", "land.pinned", "land.moved", "land.merged", "queue.landed"}

// A queue whose daemon is killed continues with the next one: every run lands once, in order, and the
// branch never stands between them.
func TestQueue(t *testing.T) {
	t.Parallel()
	for _, point := range queuePoints {
		if !whole && point != "land.moved" && point != "queue.landed" {
			continue
		}
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			w := newWorld(t)
			for _, name := range []string{"one", "two"} {
				w.must("run", "--name", name, "--headless", "--prompt", "write "+name+".txt precious\ncommit "+name)
			}
			w.must("wait", "one", "two")
			w.hold(point, "queue", "add", "one", "two")
			w.killDaemons()
			log := func() []string {
				return strings.Fields(w.f.Command("", "git", "log", "--reverse", "--format=%s", "main").Stdout)
			}
			before := log()
			if n := len(before); n != 1 && n != 3 {
				t.Errorf("the branch stands between the runs: %q", before)
			}
			w.release()
			w.awaitClient()
			w.await("both runs to land", func() bool {
				shown := w.f.Agency("queue", "show", "two").Stdout + w.f.Agency("queue", "show", "one").Stdout
				return strings.Count(shown, "landed") == 2
			})
			wrong := []string{}
			if now := log(); strings.Join(now[len(now)-2:], " ") != "one two" || len(now) != 3 {
				wrong = append(wrong, fmt.Sprintf("the branch has %q", now))
			}
			wrong = append(append(wrong, w.rest(false)...), w.database()...)
			if len(wrong) > 0 {
				t.Errorf("after %s: %s\nthe log:\n%s", time.Since(begin), strings.Join(wrong, "\n"), w.log())
			}
		})
	}
}

// stoppedPoints are the points at which the work of a run is in the branch, and its entry does not have
// that yet.
var stoppedPoints = []string{"land.moved", "land.merged", "queue.landed"}

// After the daemon was killed while a run landed, a user who is faster than the queue's first look can
// neither hold nor remove the run's entry, also when it waited for the checkout before.
func TestQueueStopAfterALanding(t *testing.T) {
	t.Parallel()
	for _, point := range stoppedPoints {
		if !whole && point != "land.moved" {
			continue
		}
		for _, state := range []string{"landing", "ready"} {
			t.Run(point+"/"+state, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.must("run", "--name", "one", "--headless", "--prompt", "write one.txt precious\ncommit one")
				w.must("wait", "one")
				if state == "ready" {
					w.writeRepo("one.txt", "of the user\n")
					w.must("queue", "add", "one")
					w.await("the checkout to be in the way", func() bool {
						return strings.Contains(w.must("queue", "show", "one", "--json"), `"state": "ready"`)
					})
					w.write("killpoint", point+" hold")
					if err := os.Remove(filepath.Join(w.f.Repo, "one.txt")); err != nil {
						t.Fatal(err)
					}
					w.awaitHit(point)
				} else {
					w.hold(point, "queue", "add", "one")
				}
				w.killDaemons()
				w.awaitClient()
				w.release()
				w.hold("queue.look", "queue", "show", "one")
				for _, change := range []string{"hold", "rm"} {
					if r := w.f.Agency("queue", change, "one"); r.Exit == 0 || !strings.Contains(r.Stderr, "is in \"main\" already") {
						t.Errorf("%s: exit %d: %s%s", change, r.Exit, r.Stdout, r.Stderr)
					}
				}
				w.release()
				w.await("the entry to land", func() bool { return strings.Contains(w.must("queue", "show", "one", "--json"), `"state": "landed"`) })
				if wrong := append(w.rest(false), w.database()...); len(wrong) > 0 {
					t.Errorf("%s\nthe log:\n%s", strings.Join(wrong, "\n"), w.log())
				}
			})
		}
	}
}

// conflictPoints are the points where an agent is asked to solve a conflict, beginPoints those where
// a new run continues the work of a removed one.
var (
	conflictPoints = []string{"queue.conflict", "queue.asked"}
	beginPoints    = []string{"create.inserted", "queue.begun", "queue.asked"}
)

// When the daemon is killed while it asks an ended agent to solve a conflict, the next one asks,
// and the work lands. It does not ask while the agent is at work on what the first one asked.
func TestQueueConflict(t *testing.T) {
	t.Parallel()
	for _, point := range conflictPoints {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for _, name := range []string{"one", "two"} {
				w.must("run", "--name", name, "--headless", "--prompt", "write a.txt "+name+"\ncommit "+name)
			}
			w.must("wait", "one", "two")
			w.hold(point, "queue", "add", "one", "two")
			w.killDaemons()
			w.release()
			w.awaitClient()
			w.await("both runs to land", func() bool {
				shown := w.f.Agency("queue", "show", "two").Stdout + w.f.Agency("queue", "show", "one").Stdout
				return strings.Count(shown, "landed") == 2
			})
			if shown := w.must("show", "two", "--json"); !strings.Contains(shown, `"number": 2`) {
				t.Errorf("the agent was asked more than once: %s", shown)
			}
			if wrong := append(w.rest(false), w.database()...); len(wrong) > 0 {
				t.Errorf("%s\nthe log:\n%s", strings.Join(wrong, "\n"), w.log())
			}
		})
	}
}

// When the daemon is killed while a new run begins to solve the conflict of a removed one, the next
// daemon finds that run again, and its work lands.
func TestQueueRemoved(t *testing.T) {
	t.Parallel()
	for _, point := range beginPoints {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for _, name := range []string{"one", "two"} {
				w.must("run", "--name", name, "--headless", "--prompt", "write a.txt "+name+"\ncommit "+name)
			}
			w.must("wait", "one", "two")
			w.must("rm", "two")
			w.hold(point, "queue", "add", "one", "two")
			w.killDaemons()
			w.release()
			w.awaitClient()
			w.await("the work of the removed run to land", func() bool {
				return strings.Contains(w.f.Agency("queue", "show", "two-fix").Stdout, "landed")
			})
			runs, err := w.runs()
			runs = slices.DeleteFunc(runs, func(r runView) bool { return !strings.HasPrefix(r.Name, "two") || isUndone(&r) })
			if err != nil || len(runs) != 2 {
				t.Errorf("not one run goes on with the work: %+v %v", runs, err)
			}
			if wrong := append(w.rest(false), w.database()...); len(wrong) > 0 {
				t.Errorf("%s\nthe log:\n%s", strings.Join(wrong, "\n"), w.log())
			}
		})
	}
}
