package crash_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agency"
)

// landing is what must hold for a landing of the run "target", however it is cut off.
type landing struct {
	w      *world
	run    string
	branch string // the target
	old    string // its commit before any landing
	mine   string // what the user has in the checkout: files, index and what git says of them
}

// commits is the task of the run that lands: two files in a commit, and one that is left over.
const commits = "write shared.txt theirs\nwrite work.txt precious\ncommit mine\nwrite left.txt forgotten\nask ready?\n"

// landingOf makes a run whose work can land in a branch, with changes of the user's in the
// checkout, staged ones too if they are asked for. From then on the world is wrong where the
// landing is.
func landingOf(w *world, branch string, staged bool) *landing {
	git := func(args ...string) string {
		r := w.f.Command("", "git", args...)
		if r.Exit != 0 {
			w.t.Fatalf("git %v: %s", args, r.Stderr)
		}
		return strings.TrimSpace(r.Stdout)
	}
	w.writeRepo("shared.txt", "ours\n")
	w.writeRepo("notes.txt", "before\n")
	git("add", "shared.txt", "notes.txt")
	git("commit", "-q", "-m", "files")
	if branch != "main" {
		git("branch", branch)
	}
	w.must("run", "--name", "target", "--prompt", commits)
	r := w.target()
	w.await("the agent's work", func() bool {
		_, err := os.Lstat(filepath.Join(r.Worktree, "left.txt"))
		return err == nil
	})
	w.must("stop", "target")
	w.writeRepo("notes.txt", "changed by the user\n")
	w.writeRepo("loose.txt", "of the user\n")
	if staged {
		w.writeRepo("staged.txt", "of the user too\n")
		git("add", "staged.txt")
	}
	l := &landing{w: w, run: r.ID, branch: branch, old: git("rev-parse", branch)}
	l.mine = l.checkout()
	w.also = l.violations
	w.again = []string{"merge", r.ID, "--include-uncommitted", "--into", branch}
	return l
}

func (w *folder) writeRepo(name, text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.f.Repo, name), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// checkout returns what the user has in the checkout: what git says of it, and the bytes.
func (l *landing) checkout() string {
	text := l.w.f.Command("", "git", "status", "--porcelain", "--untracked-files=all").Stdout
	for _, name := range []string{"notes.txt", "loose.txt", "staged.txt"} {
		data, err := os.ReadFile(filepath.Join(l.w.f.Repo, name))
		text += fmt.Sprintf("%s %q %v\n", name, data, err == nil)
	}
	return text
}

// landings returns the landings of the run, the oldest first.
func (l *landing) landings() ([]agency.Landing, error) {
	var v struct {
		Landings []agency.Landing `json:"landings"`
	}
	err := l.w.data(&v, "review", l.run, "--into", l.branch)
	return v.Landings, err
}

// violations compares the record of the landings with what git has.
func (l *landing) violations() []string {
	wrong := []string{}
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	all, err := l.landings()
	if err != nil {
		return []string{err.Error()}
	}
	want, landed := l.old, false
	for i := range all {
		switch at := &all[i]; at.State {
		case agency.LandingMoving, agency.LandingUndoing:
			say("the landing %s is still %s", at.ID, at.State)
		case agency.LandingLanded:
			if landed {
				say("%s is a second landing", at.ID)
			}
			want, landed = at.Candidate, true
		case agency.LandingFailed, agency.LandingUndone:
		}
	}
	now := l.w.f.Command("", "git", "rev-parse", "refs/heads/"+l.branch).Stdout
	if now = strings.TrimSpace(now); now != want {
		say("%s is at %s, not at %s; landings: %+v", l.branch, now, want, all)
	}
	made := l.w.f.Command("", "git", "log", "--format=%(trailers:key=Agency-Run,valueonly)", l.old+".."+l.branch).Stdout
	if n := len(strings.Fields(made)); n > 1 || landed != (n == 1) {
		say("%s has %d commits of the run; landed: %v", l.branch, n, landed)
	}
	runs, err := l.w.runs()
	if err != nil {
		return append(wrong, err.Error())
	}
	for i := range runs {
		if r := &runs[i]; r.ID == l.run && (r.Status == "merged") != landed && r.RemovedAt == nil {
			say("the run is %s; landed: %v", r.Status, landed)
		}
	}
	if mine := l.checkout(); mine != l.mine {
		say("the checkout of the user was\n%sand is\n%s", l.mine, mine)
	}
	for name, want := range map[string]string{"shared.txt": "theirs\n", "work.txt": "precious\n", "left.txt": "forgotten\n"} {
		if got := l.w.f.Command("", "git", "show", l.branch+":"+name); landed && got.Stdout != want {
			say("%s has %q in %s", l.branch, got.Stdout, name)
		}
	}
	if left := l.w.checking(); len(left) > 0 {
		say("the processes %v of checks are left", left)
	}
	return append(wrong, l.locks()...)
}

// locks returns the locks that a git left in the repository. Those of the worktrees of runs are of
// their agents.
func (l *landing) locks() []string {
	wrong := []string{}
	dir := filepath.Join(l.w.f.Repo, ".git")
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Name() == "worktrees" && filepath.Dir(path) == dir {
			return filepath.SkipDir
		}
		if err == nil && strings.HasSuffix(path, ".lock") {
			wrong = append(wrong, "the lock "+path+" is left")
		}
		return nil // what a git removes meanwhile
	})
	if err != nil {
		wrong = append(wrong, err.Error())
	}
	return wrong
}

// landingOperations are the landings of "target" and their undoing, in a branch that is checked out
// nowhere and in one that the user has checked out, with changes; a landing that is given up, one
// that is checked, and one after which the run is removed.
func landingOperations() []operation {
	merged := func(r *runView) bool { return r.Status == "merged" }
	all := []operation{}
	for _, target := range []struct{ branch, name string }{{"elsewhere", ""}, {"main", " into a checkout"}} {
		landing, undoing := []string{"land.recorded", "land.pinned"}, []string{"unland.recorded"}
		if target.branch == "main" {
			landing, undoing = append(landing, "land.checked"), append(undoing, "land.checked")
		}
		begin := func(w *world) { w.start(w.again) }
		all = append(all, operation{
			name: "merge" + target.name, points: append(landing, "land.moved", "land.merged", "land.recorded-landed"),
			prepare: func(w *world) { landingOf(w, target.branch, true) },
			trigger: begin, done: merged,
		}, operation{
			name: "merge --undo" + target.name, points: append(undoing, "unland.moved", "unland.unmerged"),
			prepare: func(w *world) {
				l := landingOf(w, target.branch, false)
				w.must(w.again...)
				all, err := l.landings()
				if err != nil || len(all) != 1 {
					w.t.Fatalf("landings %v, %v", all, err)
				}
				w.again = []string{"merge", "--undo", string(all[0].ID)}
			},
			trigger: begin, done: func(r *runView) bool { return !merged(r) },
		})
	}
	return append(all, operation{
		name: "merge whose git is killed", points: []string{"land.unpinned"},
		prepare: func(w *world) {
			landingOf(w, "main", true)
			w.write("gitkill", "git before merge --ff-only\n") // the first one; the landing is given up
		},
		trigger: func(w *world) { w.start(w.again) }, done: merged,
	}, operation{
		name:   "merge with checks",
		points: []string{"checks.worktree", "checks.shared", "checks.prepared", "check.started", "check.ended", "check.recorded", "land.recorded", "land.moved"},
		prepare: func(w *world) {
			w.landingSettings(passing)
			w.must("trust")
			landingOf(w, "main", true)
		},
		trigger: func(w *world) { w.start(w.again) }, done: merged,
		more: []victim{{"check", (*world).checking}},
	}, operation{
		name: "merge and remove", removes: true,
		points: []string{"land.merged", "land.recorded-landed", "remove.intended", "remove.saved", "worktree.going", "worktree.files", "remove.worktree", "remove.recorded"},
		prepare: func(w *world) {
			w.landingSettings("[landing]\nafter = \"gc\"\n")
			landingOf(w, "main", true)
		},
		trigger: func(w *world) { w.start(w.again) }, done: func(r *runView) bool { return merged(r) || r.RemovedAt != nil },
	})
}

// passing is a check that leaves a process, waits while the test holds the daemon after its start,
// and passes on the work of the run.
const passing = `
[[check]]
name = "precious"
run = ["sh", "-c", '''
	sleep 600 &
	while grep -qs check.started "$ROOT/killpoint" || test -e "$ROOT/killpoint.hit"; do sleep 0.02; done
	grep -qx precious work.txt
''']
`

// landingSettings commits an agency.toml.
func (w *folder) landingSettings(text string) {
	w.t.Helper()
	w.writeRepo("agency.toml", text)
	for _, args := range [][]string{{"add", "agency.toml"}, {"commit", "-q", "-m", "settings"}} {
		if r := w.f.Command("", "git", args...); r.Exit != 0 {
			w.t.Fatal(r.Stderr)
		}
	}
}

// repeatLanding repeats a landing or its undoing until it is done, and does it once more.
func (w *world) repeatLanding() []string {
	undo := has(w.again, "--undo")
	for range 2 {
		r := w.f.Agency(w.again...)
		if r.Exit != 0 && (undo || !strings.Contains(r.Stderr, "E_NOTHING_TO_LAND")) {
			return []string{fmt.Sprintf("then agency %v: exit %d: %s%s", w.again, r.Exit, r.Stdout, r.Stderr)}
		}
	}
	if target := w.target(); target.RemovedAt == nil && (target.Status == "merged") == undo {
		return []string{fmt.Sprintf("after agency %v the target is %s", w.again, target.Status)}
	}
	return w.also()
}

// What the user does with the target before the next daemon settles a landing that was cut off does
// not mislead it: commits on top of the landing, and a target that is deleted.
func TestCutOffLandingAndTheUser(t *testing.T) {
	t.Parallel()
	cutOff := func(point string) (w *world, l *landing) {
		w = newWorld(t)
		l = landingOf(w, "elsewhere", false)
		if strings.HasPrefix(point, "unland.") {
			w.must(w.again...)
			all, err := l.landings()
			if err != nil || len(all) != 1 {
				t.Fatalf("landings %v, %v", all, err)
			}
			w.again = []string{"merge", "--undo", string(all[0].ID)}
		}
		w.hold(point, w.again...)
		w.killDaemons()
		w.awaitClient()
		return w, l
	}
	git := func(w *world, script string) {
		t.Helper()
		if r := w.f.Command("", "sh", "-ec", script); r.Exit != 0 {
			t.Fatal(r.Stderr)
		}
	}
	settled := func(l *landing, want agency.LandingState) {
		t.Helper()
		l.w.await("the landing to be settled", func() bool {
			all, err := l.landings()
			return err == nil && len(all) == 1 && all[0].State == want
		})
	}

	w, l := cutOff("land.moved")
	git(w, "git update-ref refs/heads/elsewhere $(git commit-tree -p elsewhere -m mine elsewhere^{tree})")
	settled(l, agency.LandingLanded)

	for _, point := range []string{"unland.recorded", "unland.moved"} {
		w, l = cutOff(point)
		git(w, "git branch -qD elsewhere")
		l.branch = "main"
		settled(l, agency.LandingUndone)
		git(w, "git branch third main")
		w.must("merge", l.run, "--include-uncommitted", "--into", "third")
	}
}
