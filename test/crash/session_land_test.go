package crash_test

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// landPlan is a chain of two agents, and one by itself.
const landPlan = `
base: deps
defaults: {runner: shell, headless: true, land: HOW}
agents:
  - {id: low, prompt: 'echo low >low.txt && git add . && git commit -qm low'}
  - {id: high, prompt: 'echo high >high.txt && git add . && git commit -qm high', after: [low]}
  - {id: own, prompt: 'echo own >own.txt && git add . && git commit -qm own'}
`

// landPoints are the points where the landing of a session's work can be interrupted.
var landPoints = []string{
	"scheduler.land.begun", "scheduler.land.made", "scheduler.land.recorded", "land.recorded", "land.pinned", "land.moved", "land.merged", "scheduler.settled",
}

// The work of a session lands once, whenever the daemon is killed.
func TestSessionLanding(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"merge", "queue"} {
		for _, point := range landPoints {
			if !whole && !slices.Contains([]string{"merge/land.moved", "merge/scheduler.land.made", "queue/scheduler.land.made"}, how+"/"+point) {
				continue
			}
			t.Run(how+"/"+point, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.write("plan.yaml", strings.Replace(landPlan, "HOW", how, 1))
				w.hold(point, "session", "start", w.path("plan.yaml"))
				w.killDaemons()
				w.release()
				w.awaitClient()
				w.must("session", "wait", "latest", "--timeout", "60s")
				w.await("everything to land", func() bool {
					return strings.Contains(w.must("session", "show", "latest"), "all, in main")
				})
				log := strings.Fields(w.f.Command("", "git", "log", "--format=%(trailers:key=Agency-Run,valueonly)", "main").Stdout)
				slices.Sort(log)
				if len(log) != 2 || len(slices.Compact(log)) != 2 {
					t.Errorf("the branch has commits of %q", log)
				}
				for _, name := range []string{"low", "high", "own"} {
					if got := w.f.Command("", "git", "show", "main:"+name+".txt").Stdout; got != name+"\n" {
						t.Errorf("%s.txt has %q", name, got)
					}
				}
				for _, wrong := range append(append(w.sessionsWell(), w.rest(false)...), w.database()...) {
					t.Errorf("%s\nthe log:\n%s", wrong, w.log())
				}
			})
		}
	}
}

// A stop of the daemon does not refuse the work that lands at that time: the checks go on until the
// scheduler stops, and the next daemon lands the rest. Each check takes one file "go".
func TestSessionLandingDuringAStop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.writeRepo("agency.toml", `
[[check]]
name = "gate"
run = ["sh", "-c", 'echo ran >>"$ROOT/ran"; until rm "$ROOT/go" 2>/dev/null; do sleep 0.02; done']
`)
	for _, args := range [][]string{{"add", "agency.toml"}, {"commit", "-q", "-m", "checks"}} {
		if r := w.f.Command("", "git", args...); r.Exit != 0 {
			t.Fatal(r.Stderr)
		}
	}
	w.must("trust")
	w.write("plan.yaml", strings.Replace(landPlan, "HOW", "merge", 1))
	w.must("session", "start", w.path("plan.yaml"))
	w.await("the check", func() bool { _, err := os.Lstat(w.path("ran")); return err == nil })
	w.hold("daemon.drained", "daemon", "stop")
	w.write("go", "")
	w.await("the first work to land", func() bool {
		return strings.Contains(w.f.Command("", "git", "log", "--format=%(trailers)", "main").Stdout, "Agency-Run: ")
	})
	w.release()
	w.awaitClient()
	w.write("go", "")
	w.must("session", "wait", "latest", "--timeout", "60s")
	if shown := w.must("session", "show", "latest"); !strings.Contains(shown, "all, in main") {
		t.Errorf("the next daemon did not land the rest: %s", shown)
	}
}
