package crash_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// An agent whose start was taken back can have committed: its branch stays, and so does the folder
// that tells a rebuild of the record which run made it.
func TestUndoneWorkAfterARebuild(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hold("wrapper.forked", "run", "--name", "target", "--prompt", "write work.txt precious\ncommit mine\nask ready?")
	id := w.newest()
	branch := w.awaitCommit("mine")
	w.kill(w.wrapper(id))
	w.awaitClient()
	if !strings.Contains(w.said(), "[E_") {
		t.Fatalf("the creation was not taken back: %s", w.said())
	}
	w.killDaemons()
	w.deleted("agency.db")
	w.must("db", "rebuild")
	if out := w.must("doctor"); strings.Contains(out, branch) {
		t.Errorf("doctor takes the branch for an orphan:\n%s", out)
	}
	if got := w.f.Command("", "git", "show", branch+":work.txt").Stdout; got != "precious\n" {
		t.Errorf("the branch holds %q", got)
	}
	w.must("rm", "--discard", "--delete-branch", id)
	w.calm(false)
	if left, _ := filepath.Glob(filepath.Join(w.f.Repo, ".git/refs/heads", branch)); len(left) > 0 {
		t.Errorf("rm leaves %v", left)
	}
}

// An agent of a session whose start was taken back after it had committed starts again on another
// branch: its first branch keeps what it did.
func TestSessionAgentUndoneAfterACommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("plan.yaml", "agents:\n  - {id: one, headless: true, prompt: \"write work.txt precious\\ncommit mine\"}\n")
	w.hold("wrapper.forked", "session", "start", w.path("plan.yaml"))
	w.awaitClient()
	w.awaitCommit("mine")
	w.kill(w.wrapper(w.newest()))
	w.must("session", "wait", "latest", "--timeout", "60s")
	branches := w.f.Command("", "git", "for-each-ref", "--format=%(refname:lstrip=4)", "refs/heads/agency/").Stdout
	if got := strings.Fields(branches); len(got) != 2 || got[0] != "one" || got[1] != "one-2" {
		t.Errorf("the branches are %v", got)
	}
	w.calm(false)
}

// awaitCommit waits until a branch of a run is at a commit of that subject, and returns the branch.
func (w *client) awaitCommit(subject string) (branch string) {
	w.t.Helper()
	w.await("the commit "+subject, func() bool {
		refs := w.f.Command("", "git", "for-each-ref", "--format=%(refname:lstrip=2) %(subject)", "refs/heads/agency").Stdout
		for line := range strings.Lines(refs) {
			if name, ok := strings.CutSuffix(line, " "+subject+"\n"); ok {
				branch = name
			}
		}
		return branch != ""
	})
	return branch
}

// A run that was being created when the record was lost is taken back after a rebuild: its wrapper
// waits for a daemon that knows it, and its worktree is half made.
func TestCreationAfterARebuild(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"worktree.laid", "worktree.branched", "create.worktree.made"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.hold(point, "run", "--name", "target", "--prompt", asks)
			w.killDaemons()
			w.awaitClient()
			w.deleted("agency.db")
			w.must("db", "rebuild")
			w.must("ls")
			w.calm(false)
			w.must("run", "--name", "target", "--prompt", asks)
		})
	}
}

// A branch that the user made after a creation was cut off, and before the next daemon takes the
// creation back, stays: neither the daemon nor rm deletes it, though it has the name and the commit
// that the run was to have.
func TestUndoSparesTheBranchOfTheUser(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hold("create.files.made", "run", "--name", "target", "--branch", "fix/login", "--prompt", asks)
	id, pids := w.newest(), w.daemons()
	w.kill([]int{w.process.Process.Pid})
	w.kill(pids)
	w.awaitDeath(pids)
	if r := w.f.Command("", "git", "branch", "fix/login"); r.Exit != 0 {
		t.Fatal(r.Stderr)
	}
	there := func(after string) {
		t.Helper()
		if r := w.f.Command("", "git", "rev-parse", "--verify", "refs/heads/fix/login"); r.Exit != 0 {
			t.Errorf("after %s the branch of the user is gone: %s", after, r.Stderr)
		}
	}
	w.must("ls")
	there("the undo")
	out := w.must("rm", "--delete-branch", id)
	there("rm --delete-branch")
	if !strings.Contains(out, "fix/login") {
		t.Errorf("rm does not tell that the branch stays: %s", out)
	}
	w.calm(false)
}
