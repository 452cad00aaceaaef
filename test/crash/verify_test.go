package crash_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agency"
)

// verifyPoints are the points where a verification can be interrupted, in the order in which it
// reaches them.
var verifyPoints = []string{
	"checks.worktree", "checks.shared", "setup.started", "checks.prepared", "check.started", "check.ended", "check.recorded",
}

// verifySteps are the git processes of a verification that change something.
var verifySteps = []string{"worktree add", "checkout --quiet --force", "clean --quiet"}

// verifySample lists the cells that every run of the tests covers.
var verifySample = []string{"checks.worktree/daemon", "check.started/daemon", "check.started/client", "check.started/client and daemon", "git checkout --quiet --force after/git"}

// A verification that is cut off has no verdict of a check that did not end. Its next run has all
// of them, and leaves nothing but the landing worktree.
func TestVerify(t *testing.T) {
	t.Parallel()
	test := func(name string, cut func(t *testing.T)) {
		if whole || slices.Contains(verifySample, name) {
			t.Run(name, func(t *testing.T) { t.Parallel(); cut(t) })
		}
	}
	for _, point := range verifyPoints {
		test(point+"/daemon", func(t *testing.T) { killVerify(t, point, "daemon") })
		test(point+"/client", func(t *testing.T) { killVerify(t, point, "client") })
		test(point+"/client and daemon", func(t *testing.T) { killVerify(t, point, "client", "daemon") })
	}
	for _, step := range verifySteps {
		for _, when := range []string{"before", "after"} {
			for _, who := range []string{"git", "daemon"} {
				test("git "+step+" "+when+"/"+who, func(t *testing.T) { killGitOfVerify(t, step, when, who) })
			}
		}
	}
}

// killVerify tests one cell: the verification is held at the point, and the victims are killed. No
// check can end before that, unless the point is check.ended or later.
func killVerify(t *testing.T, point string, dying ...string) {
	begin := time.Now()
	w := newWorld(t)
	w.checks()
	ends := point == "check.ended" || point == "check.recorded"
	if ends {
		w.write("go", "")
	}
	w.hold(point, "verify", "target")
	cut := w.checking()
	if (len(cut) > 0) != strings.HasSuffix(point, ".started") {
		t.Errorf("at %s there are the processes %v", point, cut)
	}
	for _, v := range victims() {
		if has(dying, v.name) {
			pids := v.pids(w)
			w.kill(pids)
			w.awaitDeath(pids)
		}
	}
	w.release()
	wrong, found := []string{}, w.verdicts() // by the next daemon, if there is one
	w.awaitDeath(cut)
	goesOn := !has(dying, "client")
	if !goesOn {
		w.await("the end of the checks", func() bool { return len(w.checking()) == 0 })
	}
	if !ends && len(found) > 0 || point == "check.recorded" && len(found) == 0 {
		wrong = append(wrong, fmt.Sprintf("after the kill there are the verdicts %v", found))
	}
	w.write("go", "")
	w.awaitClient()
	if said := w.output.String(); goesOn && !strings.Contains(said, "1 of 2 checks of main passed") {
		wrong = append(wrong, "the client did not go on with the next daemon: "+said)
	}
	wrong = append(wrong, w.repeatVerify()...)
	ran, err := os.ReadFile(w.path("ran"))
	if n := strings.Count(string(ran), "\n"); err != nil || n > 2 || point == "check.recorded" && n != 1 {
		wrong = append(wrong, fmt.Sprintf("the check ran %d times: %v", n, err))
	}
	row := point
	if len(dying) > 1 {
		row += ", with its client"
	}
	w.noteVerify(begin, row, dying[len(dying)-1], wrong)
}

// killGitOfVerify tests one cell: a git of the verification dies, with its locks left behind, or
// its daemon dies while git works on.
func killGitOfVerify(t *testing.T, step, when, who string) {
	begin := time.Now()
	w := newWorld(t)
	w.checks()
	w.write("gitkill", who+" "+when+" "+step+"\n")
	w.start([]string{"verify", "target"})
	w.await("git "+step, func() bool { _, err := os.Lstat(w.path("gitkill.hit")); return err == nil })
	wrong := []string{}
	if who == "git" {
		w.awaitClient()
		if found := w.verdicts(); len(found) > 0 {
			wrong = append(wrong, fmt.Sprintf("after the kill there are the verdicts %v", found))
		}
		entries, _ := filepath.Glob(filepath.Join(w.f.Repo, ".git", "worktrees", filepath.Base(w.landing())))
		for _, entry := range entries {
			left := map[string]string{"index.lock": "", "HEAD.lock": ""}
			if step == "worktree add" {
				left["locked"] = "initializing" // as in the middle of it
			}
			for name, text := range left {
				if err := os.WriteFile(filepath.Join(entry, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	w.write("go", "")
	w.awaitClient()
	wrong = append(wrong, w.repeatVerify()...)
	w.noteVerify(begin, "git "+step+", "+when, who, wrong)
}

// checks gives the repository a setup and two checks that leave processes, of which one waits for
// the file "go" and passes on the work of the run "target", and the other fails.
func (w *client) checks() {
	w.t.Helper()
	const text = `
[scripts]
setup = ["sh", "-c", "sleep 600 &"]
[[check]]
name = "precious"
run = ["sh", "-c", '''
	echo ran >>"$ROOT/ran"
	sleep 600 &
	until test -e "$ROOT/go"; do sleep 0.02; done
	grep -qx precious work.txt
''']
[[check]]
name = "wrong"
run = ["sh", "-c", "sleep 600 & exit 3"]
`
	if err := os.WriteFile(filepath.Join(w.f.Repo, "agency.toml"), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	for _, args := range [][]string{{"add", "agency.toml"}, {"commit", "-q", "-m", "checks"}} {
		if r := w.f.Command("", "git", args...); r.Exit != 0 {
			w.t.Fatal(r.Stderr)
		}
	}
	w.must("trust")
	w.must("run", "--name", "target", "--headless", "--prompt", "write work.txt precious\ncommit work")
	w.must("wait", "target")
}

// checking returns the processes that work in a landing worktree.
func (w *processes) checking() []int {
	found := []int{}
	for pid := range w.scene().all {
		if has(words(fmt.Sprintf("/proc/%d/environ", pid)), "AGENCY_CHECKING="+w.landing()) {
			found = append(found, pid)
		}
	}
	return found
}

// landing returns the landing worktree, or a path that does not exist.
func (w *client) landing() string {
	trees, _ := filepath.Glob(filepath.Join(w.f.Data, "landing", "*"))
	if len(trees) == 0 {
		return filepath.Join(w.f.Data, "landing", "none")
	}
	return trees[0]
}

// verdicts returns the recorded verdicts on the work of the target.
func (w *client) verdicts() []agency.CheckResult {
	w.t.Helper()
	var v struct {
		Checks []agency.CheckResult `json:"checks"`
	}
	if err := w.data(&v, "show", "target"); err != nil {
		w.t.Fatal(err)
	}
	return v.Checks
}

// repeatVerify verifies again, twice, and returns what is wrong then.
func (w *world) repeatVerify() []string {
	for range 2 {
		r := w.f.Agency("verify", "target")
		if r.Exit != agency.ExitConflict || !strings.Contains(r.Stdout, "✓ pass  precious") || !strings.Contains(r.Stdout, "failed with exit 3") {
			return []string{fmt.Sprintf("then agency verify: exit %d: %s%s", r.Exit, r.Stdout, r.Stderr)}
		}
	}
	found := map[string]agency.Verdict{}
	for _, c := range w.verdicts() {
		found[c.Name] = c.Verdict
	}
	if want := map[string]agency.Verdict{"precious": agency.CheckPassed, "wrong": agency.CheckFailed}; !maps.Equal(found, want) {
		return []string{fmt.Sprintf("then there are the verdicts %v", found)}
	}
	return w.afterVerify()
}

// afterVerify waits until a verification has left only its worktree, and returns what else it left.
func (w *world) afterVerify() []string {
	for deadline := time.Now().Add(settleTime); ; time.Sleep(50 * time.Millisecond) {
		wrong := w.leftByVerify()
		if len(wrong) == 0 || time.Now().After(deadline) {
			return wrong
		}
	}
}

func (w *world) leftByVerify() []string {
	wrong := []string{}
	if left := w.checking(); len(left) > 0 {
		wrong = append(wrong, fmt.Sprintf("the processes %v are left", left))
	}
	known := strings.Count(w.f.Command("", "git", "worktree", "list", "--porcelain").Stdout, "worktree ")
	entries, _ := filepath.Glob(filepath.Join(w.f.Repo, ".git", "worktrees", "*"))
	trees, _ := filepath.Glob(filepath.Join(w.f.Data, "landing", "*"))
	const want = 3 // "other", "target" and the landing worktree
	if known != want+1 || len(entries) != want || len(trees) != 1 {
		wrong = append(wrong, fmt.Sprintf("git lists %d worktrees, with the entries %v, and there are %v", known, entries, trees))
	}
	err := filepath.WalkDir(filepath.Join(w.f.Repo, ".git"), func(path string, _ fs.DirEntry, err error) error {
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

// noteVerify checks the rest of the world and notes the outcome of a cell.
func (w *world) noteVerify(begin time.Time, point, victim string, wrong []string) {
	w.t.Helper()
	wrong = append(append(wrong, w.rest(false)...), w.database()...)
	c := cell{row: "verify: " + point, victim: victim, outcome: outcomeDone}
	if len(wrong) > 0 {
		w.t.Errorf("%s\nthe client said: %s\nthe log:\n%s", strings.Join(wrong, "\n"), w.output.String(), w.log())
		c.outcome = outcomeViolation
	}
	c.took = time.Since(begin)
	note(c)
}
