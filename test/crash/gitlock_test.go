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
func (w *processes) gitHolding(dir, input string, lock string, args ...string) (kill func()) {
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
func (w *processes) locks() map[string]string {
	w.t.Helper()
	found, err := w.namedLocks()
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

func (w *processes) namedLocks() (map[string]string, error) {
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

// named waits until doctor names exactly these locks, each with the command that removes it.
func (w *processes) named(locks ...string) {
	w.t.Helper()
	var found map[string]string
	w.await("the locks", func() bool { // doctor names none while a git works in the repository, the daemon's too
		found = w.locks()
		return len(found) >= len(locks)
	})
	for _, path := range locks {
		if found[path] != "rm -- "+path {
			w.t.Errorf("%s: doctor says %q", path, found[path])
		}
	}
	if len(found) != len(locks) {
		w.t.Errorf("doctor found %v", found)
	}
}

// refused checks that a command names the lock that blocks it, and doctor.
func (w *client) refused(lock string, args ...string) {
	w.t.Helper()
	if r := w.f.Agency(args...); r.Exit != 1 || !strings.Contains(r.Stderr, lock) || !strings.Contains(r.Stderr, "agency doctor") {
		w.t.Errorf("agency %v: exit %d: %s%s", args, r.Exit, r.Stdout, r.Stderr)
	}
}

// free removes a lock by the command that doctor names, once no git of the daemon is at work.
func (w *processes) free(lock string) {
	w.t.Helper()
	fix := ""
	w.await("doctor to name "+lock, func() bool { fix = w.locks()[lock]; return fix != "" })
	if r := w.f.Command("", "sh", "-c", fix); r.Exit != 0 {
		w.t.Errorf("the fix for %s: %s", lock, r.Stderr)
	}
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
	w.named(index, snapshot, branch, packed, config, head)

	// A lock does not stop an operation that does not need it.
	w.must("run", "--name", "beside", "--prompt", asks)
	w.must("stop", "beside")
	w.must("rm", "beside")
	w.refused(snapshot, "snapshot", "target")
	w.must("stop", "target")
	w.refused(snapshot, "rm", "target")
	if !w.hasWork(w.target()) {
		t.Error("the work of the agent is lost")
	}
	w.free(snapshot)
	w.must("snapshot", "target")
	w.refused(packed, "rm", "--delete-branch", "target")
	w.free(packed)
	w.refused(branch, "rm", "--delete-branch", "target")
	w.free(branch)
	w.must("rm", "--delete-branch", "target")
	if !w.hasWork(w.target()) {
		t.Error("the work of the agent is lost after rm")
	}
	if err := os.WriteFile(branch, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.refused(branch, "run", "--name", "target", "--branch", r.Branch, "--prompt", asks)
	w.named(branch, config) // the others went with the worktree
	w.free(branch)
	w.free(config)
	w.must("run", "--name", "target", "--prompt", asks)
	w.calm(false)
}

// A lock that a git left in the checkout of the user is named, with the command that removes it,
// and what to close before. It stays until then, and none is named while the user writes the
// message of a commit.
func TestGitLocksOfTheUser(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := landingOf(w, "main", false)
	linked := w.path("linked")
	for _, args := range [][]string{{"branch", "second"}, {"worktree", "add", "-q", linked, "second"}} {
		if r := w.f.Command("", "git", args...); r.Exit != 0 {
			t.Fatal(r.Stderr)
		}
	}
	w.must("merge", l.run, "--include-uncommitted", "--into", "second")
	common := filepath.Join(w.f.Repo, ".git")
	index := filepath.Join(common, "index.lock")
	w.script("editor", "#!/bin/sh\ntouch \"$ROOT/editing\"\nuntil test -e \"$ROOT/edited\"; do sleep 0.02; done\nexit 1\n")
	kill := w.gitHolding(w.f.Repo, "", index, "-c", "core.editor="+w.path("editor"), "commit", "--allow-empty", "-a")
	w.await("the editor", func() bool { _, err := os.Lstat(w.path("editing")); return err == nil })
	if found := w.locks(); len(found) > 0 {
		t.Errorf("doctor would remove the lock of a commit under way: %v", found)
	}
	kill()
	w.write("edited", "")
	want := []string{index}
	for _, name := range []string{"HEAD.lock", "ORIG_HEAD.lock", "refs/heads/second.lock", "worktrees/linked/index.lock"} {
		want = append(want, filepath.Join(common, name))
		if err := os.WriteFile(filepath.Join(common, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var found map[string]string
	w.await("the locks", func() bool { found = w.locks(); return len(found) >= len(want) })
	for _, path := range want {
		if found[path] != "rm -- "+path {
			t.Errorf("%s: doctor says %q", path, found[path])
		}
	}
	if r := w.f.Agency("merge", l.run, "--include-uncommitted"); r.Exit == 0 || !strings.Contains(r.Stderr, "E_TARGET_DIRTY") {
		t.Errorf("a landing in spite of the lock: %s%s", r.Stdout, r.Stderr)
	}
	w.await("doctor to say what to close", func() bool { // it names no lock while a git of the daemon works
		return strings.Contains(w.f.Agency("doctor").Stdout, "first close what may hold it")
	})
	for path, fix := range found {
		if r := w.f.Command("", "sh", "-c", fix); r.Exit != 0 {
			t.Errorf("the fix for %s: %s", path, r.Stderr)
		}
	}
	w.must("merge", l.run, "--include-uncommitted")
}
