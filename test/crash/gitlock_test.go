package crash_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// gitHolding starts a git that takes locks and waits, and returns a function that kills it.
func (w *world) gitHolding(dir, input string, lock string, args ...string) (kill func()) {
	w.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = dir, w.f.Env
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		_, err = io.WriteString(stdin, input)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	kill = func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	w.t.Cleanup(kill)
	w.await("the lock", func() bool { _, err := os.Lstat(lock); return err == nil })
	return kill
}

// locks returns the git locks that doctor finds, each with the command that removes it.
func (w *world) locks() map[string]string {
	w.t.Helper()
	found, err := w.namedLocks()
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

func (w *world) namedLocks() (map[string]string, error) {
	var report struct {
		Checks []struct{ Name, Text, Fix string } `json:"checks"`
	}
	found := map[string]string{}
	err := w.data(&report, "doctor")
	for _, c := range report.Checks {
		if c.Name == "orphan git lock" {
			path, _, _ := strings.Cut(c.Text, ", left ")
			found[path] = c.Fix
		}
	}
	return found, err
}

// A git that is killed leaves its locks. Doctor names each with the command that removes it, once
// no git is at work; until then every operation works or names what blocks it.
func TestGitLocks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	runTarget(w)
	r := w.target()
	common := filepath.Join(w.f.Repo, ".git")
	linked := filepath.Join(common, "worktrees", filepath.Base(r.Worktree))
	branch := filepath.Join(common, "refs", "heads", filepath.FromSlash(r.Branch)+".lock")
	snapshot := filepath.Join(common, "refs", "agency", "snapshots", r.ID, "1.lock")
	index := filepath.Join(linked, "index.lock")
	packed, config, head := filepath.Join(common, "packed-refs.lock"), filepath.Join(common, "config.lock"), filepath.Join(linked, "HEAD.lock")

	// Two gits are killed, and three more locks are made as killed ones would leave them.
	killIndex := w.gitHolding(r.Worktree, "", index, "update-index", "--index-info")
	killRefs := w.gitHolding(w.f.Repo, "start\nupdate refs/heads/"+r.Branch+" HEAD~0\ncreate refs/agency/snapshots/"+r.ID+"/1 HEAD\nprepare\n",
		snapshot, "update-ref", "--stdin")
	if found := w.locks(); len(found) > 0 {
		t.Errorf("doctor would remove locks of a git that lives: %v", found)
	}
	killIndex()
	killRefs()
	for _, path := range []string{packed, config, head} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found := w.locks()
	for _, path := range []string{index, snapshot, branch, packed, config, head} {
		if found[path] != "rm -- "+path {
			t.Errorf("%s: doctor says %q", path, found[path])
		}
	}
	if len(found) != 6 {
		t.Errorf("doctor found %v", found)
	}

	// A lock does not stop an operation that does not need it.
	w.must("run", "--name", "beside", "--prompt", asks)
	w.must("stop", "beside")
	w.must("rm", "beside")
	refused := func(lock string, args ...string) {
		t.Helper()
		if r := w.f.Agency(args...); r.Exit != 1 || !strings.Contains(r.Stderr, lock) || !strings.Contains(r.Stderr, "agency doctor") {
			t.Errorf("agency %v: exit %d: %s%s", args, r.Exit, r.Stdout, r.Stderr)
		}
	}
	free := func(path string) {
		t.Helper()
		if r := w.f.Command("", "sh", "-c", w.locks()[path]); r.Exit != 0 {
			t.Errorf("the fix for %s: %s", path, r.Stderr)
		}
	}
	refused(snapshot, "snapshot", "target")
	w.must("stop", "target")
	refused(snapshot, "rm", "target")
	if !w.hasWork(w.target()) {
		t.Error("the work of the agent is lost")
	}
	free(snapshot)
	w.must("snapshot", "target")
	refused(packed, "rm", "--delete-branch", "target")
	free(packed)
	refused(branch, "rm", "--delete-branch", "target")
	free(branch)
	w.must("rm", "--delete-branch", "target")
	if !w.hasWork(w.target()) {
		t.Error("the work of the agent is lost after rm")
	}
	if err := os.WriteFile(branch, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(branch, "run", "--name", "target", "--branch", r.Branch, "--prompt", asks)
	for path := range w.locks() {
		free(path)
	}
	w.must("run", "--name", "target", "--prompt", asks)
	w.calm(false)
}
