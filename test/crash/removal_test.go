package crash_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agency"
)

// The next daemon finishes an interrupted removal as it was requested.
func TestRemovalGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stoppedTarget(w)
	r := w.target()
	w.write("killpoint", "worktree.going")
	w.start([]string{"rm", "--delete-branch", "target"})
	w.await("the point", func() bool { _, err := os.Lstat(w.path("killpoint.hit")); return err == nil })
	w.awaitClient()
	if err := os.Remove(w.path("killpoint.hit")); err != nil {
		t.Fatal(err)
	}

	w.hold("worktree.files", "ls") // the next daemon works on it
	w.awaitClient()
	if out := w.must("show", r.ID); !strings.Contains(out, "removing") {
		t.Errorf("meanwhile it shows as %s", out)
	}
	if r := w.f.Agency("resume", "target"); r.Exit != agency.ExitConflict || !strings.Contains(r.Stderr, "target is being removed") {
		t.Errorf("resume: exit %d, %s%s", r.Exit, r.Stdout, r.Stderr)
	}
	w.release()
	if wrong := w.rest(false); len(wrong) > 0 {
		t.Fatal(strings.Join(wrong, "\n"))
	}
	if now := w.run("target"); now.RemovedAt == nil || !w.hasWork(now) || w.f.Command("", "git", "rev-parse", "--verify", r.Branch).Exit == 0 {
		t.Errorf("it is %+v", now)
	}
}

// A run counts as removed when all of it is proven to be gone; a killed git proves nothing.
// Leftovers of an older agency, which took it for a proof, are removed by the next rm, and doctor
// names them.
func TestRemovalCutOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stoppedTarget(w)
	r := w.target()
	if err := os.Rename(r.Worktree, r.Worktree+".going"); err != nil { // as an interrupted removal leaves it
		t.Fatal(err)
	}
	w.write("gitdead", "rev-parse\n")
	// The daemon may remember where the repository is. Either way the run is there.
	if r := w.f.Agency("ls"); !strings.Contains(r.Stdout, "target") && (r.Exit != 1 || !strings.Contains(r.Stderr, "git rev-parse: signal: killed [E_GIT_FAILED]")) {
		t.Errorf("agency ls while git is killed: exit %d: %s%s", r.Exit, r.Stdout, r.Stderr)
	}
	for _, args := range [][]string{{"rm", "target"}, {"rm", "--discard", "target"}} {
		if r := w.f.Agency(args...); r.Exit != 1 || !strings.Contains(r.Stderr, "git rev-parse") {
			t.Errorf("agency %v while git is killed: exit %d: %s%s", args, r.Exit, r.Stdout, r.Stderr)
		}
	}
	if err := os.Remove(w.path("gitdead")); err != nil {
		t.Fatal(err)
	}
	if now := w.target(); now.RemovedAt != nil {
		t.Fatal("it is removed in the record")
	}
	w.must("rm", "target")
	if wrong := w.rest(false); len(wrong) > 0 {
		t.Fatal(strings.Join(wrong, "\n"))
	}

	// This is the state that the earlier defect left.
	going := r.Worktree + ".going"
	if res := w.f.Command("", "git", "worktree", "add", "-q", "-b", r.Branch, r.Worktree); res.Exit != 0 {
		t.Fatal(res.Stderr)
	}
	if err := os.Rename(r.Worktree, going); err != nil {
		t.Fatal(err)
	}
	fixes := w.orphans()
	if fixes[going] != "agency rm "+r.ID || fixes[r.Worktree+" in "+w.f.Repo] != "agency rm "+r.ID {
		t.Errorf("doctor says %v", fixes)
	}
	w.must("rm", "--delete-branch", r.ID)
	if _, err := os.Lstat(going); err == nil || len(w.orphans()) > 0 {
		t.Errorf("left: %v", w.orphans())
	}
	if _, err := os.Lstat(filepath.Join(w.f.Repo, ".git", "worktrees", r.ID)); err == nil {
		t.Error("git still knows the worktree")
	}
}

// orphans returns the paths that doctor calls orphans, each with its fix.
func (w *client) orphans() map[string]string {
	w.t.Helper()
	var report struct {
		Checks []struct{ Name, Text, Fix string } `json:"checks"`
	}
	if err := w.data(&report, "doctor"); err != nil {
		w.t.Fatal(err)
	}
	found := map[string]string{}
	for _, c := range report.Checks {
		if strings.HasPrefix(c.Name, "orphan ") {
			found[c.Text] = c.Fix
		}
	}
	return found
}
