package crash_test

import (
	"strings"
	"testing"

	"agency"
)

// targetChanges are what a user does to the target of a landing while it is made.
var targetChanges = []struct {
	name, branch, script string
	code                 string // of the refusal; empty when it lands
	target               string // of the repetition
}{
	{"deleted", "elsewhere", "git branch -qD elsewhere", "E_BAD_REF", "third"},
	{"renamed", "elsewhere", "git branch -m elsewhere third", "E_BAD_REF", "third"},
	{"renamed in a checkout", "main", "git branch -m main third", "E_TARGET_DIRTY", "third"},
	{"switched in a checkout", "main", "git switch -q -c third", "E_TARGET_DIRTY", "third"},
	{"moved", "elsewhere", "git update-ref refs/heads/elsewhere $(git commit-tree -p elsewhere -m theirs 'elsewhere^{tree}')", "", "elsewhere"},
	{"written on", "elsewhere", "", "", "elsewhere"},
}

// A target that is deleted, renamed or moved, a checkout that is switched, and an agent that writes
// on, each at the last moment before the target moves: nothing is lost or overwritten, the command
// says what happened, and its repetition lands the work.
func TestTargetChangesDuringALanding(t *testing.T) {
	t.Parallel()
	for _, change := range targetChanges {
		t.Run(change.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			l := landingOf(w, change.branch, false)
			git := func(script string) string {
				r := w.f.Command("", "sh", "-ec", script)
				if r.Exit != 0 {
					t.Fatal(r.Stderr)
				}
				return strings.TrimSpace(r.Stdout)
			}
			git("git branch third")
			if strings.Contains(change.script, "third") {
				git("git branch -qD third")
			}
			w.hold("land.pinned", w.again...)
			if change.script == "" {
				git("echo more >\"$(agency path target)/more.txt\"")
			} else {
				git(change.script)
			}
			w.release()
			w.awaitClient()
			said := w.said()
			want := "landed in elsewhere"
			if change.code != "" {
				want = "[" + change.code + "]"
			}
			if !strings.Contains(said, want) {
				t.Errorf("the command said: %s", said)
			}
			l.checkSettled(t, change.code != "", said)
			w.f.Agency("merge", l.run, "--include-uncommitted", "--into", change.target)
			for name, text := range map[string]string{"shared.txt": "theirs", "work.txt": "precious", "left.txt": "forgotten"} {
				if got := git("git show " + change.target + ":" + name); got != text {
					t.Errorf("%s has %q in %s", change.target, got, name)
				}
			}
			if change.script == "" && git("git show "+change.target+":more.txt") != "more" {
				t.Errorf("%s lacks what was written during the landing", change.target)
			}
			if change.name == "moved" && !strings.Contains(git("git log --format=%s elsewhere"), "theirs") {
				t.Error("the commit of the user is lost")
			}
			if mine := l.checkout(); mine != l.mine {
				t.Errorf("the checkout of the user was\n%sand is\n%s", l.mine, mine)
			}
			if wrong := append(l.locks(), w.database()...); len(wrong) > 0 {
				t.Error(strings.Join(wrong, "\n"))
			}
		})
	}
}

// checkSettled checks that none of the landings is under way and, after a refusal, that all failed.
// said is what the command printed.
func (l *landing) checkSettled(t *testing.T, refused bool, said string) {
	t.Helper()
	all, err := l.landings()
	if err != nil {
		return // the target is gone
	}
	for i := range all {
		if state := all[i].State; state == agency.LandingMoving || refused && state != agency.LandingFailed {
			t.Errorf("the landing %s is %s: %s", all[i].ID, state, said)
		}
	}
}

// A run that is to be removed once it landed is removed by the next daemon, when the one that
// landed it was killed before that.
func TestCutOffBeforeItsRunIsRemoved(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"land.moved", "land.merged", "land.recorded-landed"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.landingSettings("[landing]\nafter = \"gc\"\n")
			w.must("run", "--name", "kept", "--headless", "--prompt", "write kept.txt 1\ncommit kept")
			w.must("run", "--name", "work", "--headless", "--prompt", "write work.txt 1\ncommit work")
			w.must("wait", "kept", "work")
			w.hold(point, "merge", "work")
			w.killDaemons()
			w.release()
			w.awaitClient()
			w.await("the run to be removed", func() bool { return w.run("work").RemovedAt != nil })
			if kept := w.run("kept"); kept.RemovedAt != nil || w.run("work").Status != "merged" {
				t.Errorf("kept is %+v, work is %s", kept, w.run("work").Status)
			}
			if wrong := append(w.rest(false), w.database()...); len(wrong) > 0 {
				t.Errorf("%s\nthe log:\n%s", strings.Join(wrong, "\n"), w.log())
			}
		})
	}
}
