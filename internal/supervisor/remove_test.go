package supervisor_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agency"
	"agency/internal/status"
	"agency/internal/supervisor"
)

func TestRemove(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.ended("fix-login")
	got, err := w.sup.RemoveRun(t.Context(), supervisor.RemoveRequest{Ref: "fix-login"})
	if err != nil {
		t.Fatal(err)
	}
	if got.Snapshot != nil || got.Branch != r.Branch || got.Run.RemovedAt == nil || len(got.Warnings) != 0 || got.Warnings == nil {
		t.Errorf("got %+v", got)
	}
	if _, err := os.Lstat(r.Worktree); !os.IsNotExist(err) {
		t.Errorf("worktree: got %v", err)
	}
	if _, err := os.Lstat(r.Dir); err != nil {
		t.Errorf("the logs went too: %v", err)
	}
	if len(w.tmux.left()) != 0 || w.git.branches[r.Branch] == "" {
		t.Errorf("sessions %v, branches %v", w.tmux.left(), w.git.branches)
	}
	seq := w.lastSeq()
	again, err := w.sup.RemoveRun(t.Context(), supervisor.RemoveRequest{Ref: string(r.ID)})
	if err != nil || !again.Already || got.Already || w.lastSeq() != seq || !again.Run.RemovedAt.Equal(*got.Run.RemovedAt) {
		t.Errorf("again: got %+v, %v", again, err)
	}
}

func TestRemoveOfTheLivingIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.started("fix-login")
	_, err := w.sup.RemoveRun(t.Context(), supervisor.RemoveRequest{Ref: "fix-login", Discard: true})
	wantCode(t, err, agency.CodeInvalidState)
	if len(w.tmux.left()) != 1 {
		t.Error("its session is gone")
	}
}

func TestRemoveSavesWork(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		facts    agency.GitFacts
		unmerged bool
		saves    bool
	}{
		"clean":            {agency.GitFacts{Branch: "BRANCH"}, false, false},
		"dirty":            {agency.GitFacts{Branch: "BRANCH", Dirty: true}, false, true},
		"unmerged":         {agency.GitFacts{Branch: "BRANCH", Ahead: 1}, true, true},
		"merged":           {agency.GitFacts{Branch: "BRANCH", Ahead: 1}, false, false},
		"detached":         {agency.GitFacts{Ahead: 1}, false, true},
		"on its own":       {agency.GitFacts{Branch: "agent/idea", Ahead: 2}, false, true},
		"detached at base": {agency.GitFacts{}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r := w.ended("fix-login")
			if test.facts.Branch == "BRANCH" {
				test.facts.Branch = r.Branch
			}
			w.git.facts, w.git.unmerged = test.facts, test.unmerged
			got, err := w.sup.RemoveRun(t.Context(), supervisor.RemoveRequest{Ref: "fix-login", DeleteBranch: true})
			if err != nil {
				t.Fatal(err)
			}
			if saved := got.Snapshot != nil; saved != test.saves || len(w.git.snapshots) > 0 != test.saves {
				t.Errorf("got %+v, want it saved: %v", got.Snapshot, test.saves)
			}
			if got.Branch != "" || len(w.git.branches) != 0 {
				t.Errorf("branches: got %v", w.git.branches)
			}
		})
	}
}

// A number is used once, even when the removal was cut off.
func TestSnapshotNumbers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.ended("fix-login")
	other := w.ended("other")
	w.git.facts, w.git.nested = agency.GitFacts{Dirty: true, Branch: r.Branch}, []string{"vendor/lib"}
	for range 2 {
		_, err := w.sup.RemoveRun(t.Context(), supervisor.RemoveRequest{Ref: "fix-login"})
		wantCode(t, err, agency.CodeCleanupFailed)
		if e := agency.AsError(err); e.Details["nested"] == nil || !strings.Contains(e.Hint, "--discard") {
			t.Errorf("got %+v", e)
		}
	}
	if _, err := os.Lstat(r.Worktree); err != nil {
		t.Fatal(err)
	}
	if w.run(r.ID).RemovedAt != nil {
		t.Error("it is removed")
	}
	got, err := w.sup.RemoveRun(t.Context(), supervisor.RemoveRequest{Ref: "fix-login", Discard: true})
	if err != nil || got.Snapshot != nil || len(w.git.snapshots) != 2 {
		t.Errorf("discarded: got %+v, %v and %v", got, err, w.git.snapshots)
	}
	w.git.nested = nil
	got, err = w.sup.RemoveRun(t.Context(), supervisor.RemoveRequest{Ref: "other"})
	if err != nil || got.Snapshot.Ref != agency.SnapshotRefs(other.ID)+"1" {
		t.Errorf("other: got %+v, %v", got, err)
	}
}

// A branch with work that is nowhere else is not deleted when its worktree can no longer be read.
func TestRemoveKeepsUnsavedBranches(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.ended("fix-login")
	if err := os.RemoveAll(r.Worktree); err != nil {
		t.Fatal(err)
	}
	w.git.unmerged = true
	req := supervisor.RemoveRequest{Ref: "fix-login", DeleteBranch: true}
	_, err := w.sup.RemoveRun(t.Context(), req)
	wantCode(t, err, agency.CodeCleanupFailed)
	if w.run(r.ID).RemovedAt != nil || w.git.branches[r.Branch] == "" {
		t.Errorf("got %+v and branches %v", w.run(r.ID), w.git.branches)
	}
	req.Discard = true
	if _, err := w.sup.RemoveRun(t.Context(), req); err != nil || len(w.git.branches) != 0 {
		t.Errorf("got %v and branches %v", err, w.git.branches)
	}
}

// A branch is not deleted because of a snapshot that the repository is not proven to have.
func TestRemoveKeepsBranchesOfUnprovenSnapshots(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.ended("fix-login")
	w.git.facts.Dirty = true
	if _, _, err := w.sup.SnapshotRun(t.Context(), "fix-login"); err != nil {
		t.Fatal(err)
	}
	w.git.facts.Dirty = false
	w.git.unproven = agency.Errorf(agency.CodeCleanupFailed, "an object is missing")
	_, err := w.sup.RemoveRun(t.Context(), supervisor.RemoveRequest{Ref: "fix-login", DeleteBranch: true})
	wantCode(t, err, agency.CodeCleanupFailed)
	if w.run(r.ID).RemovedAt != nil || w.git.branches[r.Branch] == "" {
		t.Errorf("got %+v and branches %v", w.run(r.ID), w.git.branches)
	}
}

// A folder that git no longer knows as a worktree is given up only on request.
func TestRemoveOfABrokenWorktree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.ended("fix-login")
	delete(w.git.worktrees, r.Worktree)
	w.git.inspectErr = errors.New("not a git repository")
	_, err := w.sup.RemoveRun(t.Context(), supervisor.RemoveRequest{Ref: "fix-login"})
	wantCode(t, err, agency.CodeCleanupFailed)
	if hint := agency.AsError(err).Hint; !strings.Contains(hint, "worktree repair; or give the work up: agency rm --discard fix-login") {
		t.Errorf("the hint is %q", hint)
	}
	got, err := w.sup.RemoveRun(t.Context(), supervisor.RemoveRequest{Ref: "fix-login", Discard: true})
	if err != nil || got.Snapshot != nil {
		t.Errorf("got %+v, %v", got, err)
	}
}

// Only a user who says so gives work up: git that was killed, or could open no more files, proves
// nothing. What is discarded is not saved, and commits stay on the branch.
func TestDiscardSavesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.ended("fix-login")
	w.git.facts, w.git.unmerged = agency.GitFacts{Branch: r.Branch, Dirty: true, Ahead: 1}, true
	w.git.inspectErr, w.git.worktreeErr = errors.New("signal: killed"), errors.New("signal: killed")
	_, err := w.sup.RemoveRun(t.Context(), supervisor.RemoveRequest{Ref: "fix-login"})
	wantCode(t, err, agency.CodeCleanupFailed)
	if w.run(r.ID).RemovedAt != nil || w.git.worktrees[r.Worktree] == "" {
		t.Fatalf("it was removed: %+v", w.git.worktrees)
	}
	w.git.inspectErr, w.git.worktreeErr = nil, nil
	got, err := w.sup.RemoveRun(t.Context(), supervisor.RemoveRequest{Ref: "fix-login", Discard: true})
	if err != nil || got.Snapshot != nil || len(w.git.snapshots) > 0 || got.Branch != r.Branch || w.git.worktrees[r.Worktree] != "" {
		t.Errorf("got %+v, %v and %v", got, err, w.git.snapshots)
	}
}

// Committed work that is on the run's branch is not saved again where that branch stays, if the
// repository is proven to have it.
func TestRemoveLeavesWorkOnItsBranch(t *testing.T) {
	t.Parallel()
	for name, unproven := range map[string]error{"proven": nil, "unproven": errBoom} {
		w := newWorld(t)
		r := w.ended("fix-login")
		w.git.facts, w.git.unmerged, w.git.unproven = agency.GitFacts{Branch: r.Branch, Ahead: 1}, true, unproven
		got, err := w.sup.RemoveRun(t.Context(), supervisor.RemoveRequest{Ref: "fix-login"})
		if err != nil || (got.Snapshot != nil) != (unproven != nil) || got.Branch != r.Branch || w.git.branches[r.Branch] == "" {
			t.Errorf("%s: got %+v, %v and branches %v", name, got, err, w.git.branches)
		}
	}
}

// The branch of a run can be deleted later than the run.
func TestRemoveTheBranchLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.ended("fix-login")
	req := supervisor.RemoveRequest{Ref: string(r.ID)}
	if _, err := w.sup.RemoveRun(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	req.DeleteBranch, w.git.unmerged = true, true
	_, err := w.sup.RemoveRun(t.Context(), req)
	wantCode(t, err, agency.CodeCleanupFailed)
	w.git.unmerged = false
	got, err := w.sup.RemoveRun(t.Context(), req)
	if err != nil || got.Branch != "" || len(w.git.branches) != 0 {
		t.Errorf("got %+v, %v and branches %v", got, err, w.git.branches)
	}
}

// What is already missing is a warning.
func TestRemoveWarns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.ended("fix-login")
	w.tmux.vanish(w.tmux.left()...)
	if err := os.RemoveAll(r.Worktree); err != nil {
		t.Fatal(err)
	}
	got, err := w.sup.RemoveRun(t.Context(), supervisor.RemoveRequest{Ref: "fix-login"})
	if err != nil || len(got.Warnings) != 2 || got.Run.RemovedAt == nil {
		t.Errorf("got %+v, %v", got, err)
	}

	// The stop of a run ends its session too: no warning.
	w.started("stopped")
	if _, err := w.sup.StopRun(t.Context(), "stopped"); err != nil {
		t.Fatal(err)
	}
	got, err = w.sup.RemoveRun(t.Context(), supervisor.RemoveRequest{Ref: "stopped"})
	if err != nil || len(got.Warnings) != 0 {
		t.Errorf("stopped: got %+v, %v", got, err)
	}
}

// Without its repository a worktree cannot be saved, so it stays unless it is given up.
func TestRemoveWithoutTheRepository(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.ended("fix-login")
	clear(w.git.repos)
	_, err := w.sup.RemoveRun(t.Context(), supervisor.RemoveRequest{Ref: "fix-login"})
	wantCode(t, err, agency.CodeCleanupFailed)
	if _, err := os.Lstat(r.Worktree); err != nil {
		t.Fatal(err)
	}
	got, err := w.sup.RemoveRun(t.Context(), supervisor.RemoveRequest{Ref: "fix-login", Discard: true})
	if err != nil || got.Run.RemovedAt == nil || len(got.Warnings) == 0 {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := os.Lstat(r.Worktree); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the worktree that was given up is still there: %v", err)
	}
}

// A git that was killed, or could not read, proves nothing: the run is not removed before all of it
// is.
func TestRemoveWhileGitFails(t *testing.T) {
	t.Parallel()
	for _, failure := range []error{
		errors.New("git rev-parse: signal: killed"),
		agency.Errorf(agency.CodeNotGitRepo, "git cannot use the repository: too many open files"),
		agency.Errorf(agency.CodeInvalidPath, "it cannot be used: input/output error"),
	} {
		w := newWorld(t)
		r := w.ended("fix-login")
		if err := os.RemoveAll(r.Worktree); err != nil { // as a removal that was cut off leaves it
			t.Fatal(err)
		}
		for _, force := range []bool{false, true} {
			w.git.discoverErr = failure
			_, err := w.sup.RemoveRun(t.Context(), supervisor.RemoveRequest{Ref: "fix-login", Discard: force})
			if err == nil || w.run(r.ID).RemovedAt != nil || w.git.worktrees[r.Worktree] == "" {
				t.Errorf("%v, force %v: got %v, removed at %v", failure, force, err, w.run(r.ID).RemovedAt)
			}
		}
		w.git.discoverErr = nil
		if _, err := w.sup.RemoveRun(t.Context(), supervisor.RemoveRequest{Ref: "fix-login"}); err != nil || w.git.worktrees[r.Worktree] != "" {
			t.Errorf("%v: then %v, and left %v", failure, err, w.git.worktrees)
		}
	}
}

// A tmux that fails proves nothing of the session: the run is not removed before it has ended.
func TestRemoveWhileTmuxFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.ended("fix-login")
	w.tmux.KillErr = errors.New("tmux: too many open files")
	_, err := w.sup.RemoveRun(t.Context(), supervisor.RemoveRequest{Ref: "fix-login"})
	if err == nil || !strings.Contains(err.Error(), "too many open files") || w.run(r.ID).RemovedAt != nil {
		t.Errorf("got %v, removed at %v", err, w.run(r.ID).RemovedAt)
	}
	w.tmux.KillErr = nil
	if _, err := w.sup.RemoveRun(t.Context(), supervisor.RemoveRequest{Ref: "fix-login"}); err != nil || len(w.tmux.left()) != 0 {
		t.Errorf("then %v, and left %v", err, w.tmux.left())
	}
}

// A run that is recorded as removed, while git still knows its worktree, is removed by the next rm.
func TestRemoveTheRest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.ended("fix-login")
	if _, err := w.sup.RemoveRun(t.Context(), supervisor.RemoveRequest{Ref: "fix-login"}); err != nil {
		t.Fatal(err)
	}
	w.git.worktrees[r.Worktree] = r.Branch
	seq := w.lastSeq()
	got, err := w.sup.RemoveRun(t.Context(), supervisor.RemoveRequest{Ref: string(r.ID), DeleteBranch: true})
	if err != nil || len(w.git.worktrees) != 0 || len(w.git.branches) != 0 || got.Branch != "" || w.lastSeq() != seq {
		t.Errorf("got %+v, %v, and left %v and %v", got, err, w.git.worktrees, w.git.branches)
	}
}

// A repository that git cannot read does not count as moved: its copy gets an identity of its own.
func TestCopyWhileGitFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ended("first")
	copied := w.git.repos[w.root]
	copied.Root, copied.Toplevel = w.root+"-copy", w.root+"-copy"
	w.git.repos[copied.Root] = copied
	w.git.discoverOnce = errors.New("git rev-parse: signal: killed")
	req := w.request("second")
	req.Spec.Repo = copied.Root
	if _, err := w.createRun(t.Context(), req); err == nil || len(w.git.repaired) != 0 {
		t.Errorf("got %v, and repaired %q", err, w.git.repaired)
	}
}

// A wrapper that still ends what its runner left could write to the worktree.
func TestRemoveAwaitsTheWrapper(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		goesAfter time.Duration
		code      agency.Code
	}{
		"goes":  {time.Second, ""},
		"stays": {time.Hour, agency.CodeCleanupFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				r, p := w.started("fix-login")
				p.mustEnd(t, agency.Exit{EndedBy: agency.EndedByRunner})
				w.attempts.change(p.dir, func(h *onHost) { h.locked = true })
				goes := time.AfterFunc(test.goesAfter, func() { w.attempts.change(p.dir, func(h *onHost) { h.locked = false }) })
				defer goes.Stop()
				_, err := w.sup.RemoveRun(t.Context(), supervisor.RemoveRequest{Ref: "fix-login"})
				if codeOf(err) != test.code {
					t.Errorf("got %v, want %q", err, test.code)
				}
				if removed := w.run(r.ID).RemovedAt != nil; removed != (test.code == "") {
					t.Errorf("removed: %v", removed)
				}
			})
		})
	}
}

// A removal that was cut off is finished by the next daemon as it was requested; one that fails
// leaves the run as it was.
func TestRemovalGoesOn(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{"finishes": nil, "fails": errBoom} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				r := w.ended("fix-login")
				w.sup.Stop()
				_, err := w.store.ChangeRun(t.Context(), r.ID, func(r *agency.Run) ([]agency.EventDraft, error) {
					r.Removing = &agency.Removing{At: time.Now(), DeleteBranch: true}
					return nil, nil
				})
				if err != nil {
					t.Fatal(err)
				}
				if now := w.run(r.ID); status.Derive(status.Facts{Run: now}, time.Now()).Label != agency.LabelRemoving {
					t.Errorf("it shows as %+v", status.Derive(status.Facts{Run: now}, time.Now()))
				}
				w.git.inspectErr = failure
				w.start()
				synctest.Wait()
				now := w.run(r.ID)
				if removed := now.RemovedAt != nil; removed != (failure == nil) || now.Removing != nil || (w.git.branches[r.Branch] == "") != removed {
					t.Errorf("got %+v and branches %v", now, w.git.branches)
				}
			})
		})
	}
}
