package supervisor_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agency"
	"agency/internal/supervisor"
)

// A branch that the user made after a creation was cut off is not the creation's, though it has the
// name and the commit that the run was to have: neither its undo nor rm deletes it.
func TestUndoSparesABranchMadeMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	req := w.request("fix-login")
	req.Spec.Branch = "fix/login"
	w.git.AddWorktreeFunc = func(string) error {
		w.git.mu.Lock()
		defer w.git.mu.Unlock()
		w.git.branches["fix/login"] = baseCommit
		return agency.Errorf(agency.CodeWorktreeFailed, "git was killed")
	}
	_, err := w.createRun(t.Context(), req)
	wantCode(t, err, agency.CodeWorktreeFailed)
	wantSpared(t, w)
}

// rm --delete-branch of a run that found its branch taken does not delete that branch, whether or
// not the creation could be undone.
func TestRemoveSparesATakenBranch(t *testing.T) {
	t.Parallel()
	for _, undone := range []bool{true, false} {
		w := newWorld(t)
		req := w.request("fix-login")
		req.Spec.Branch = "fix/login"
		w.git.AddWorktreeFunc = func(string) error {
			w.git.mu.Lock()
			defer w.git.mu.Unlock()
			w.git.branches["fix/login"] = baseCommit
			if !undone {
				w.git.discoverErr = errBoom
			}
			return nil
		}
		_, err := w.createRun(t.Context(), req)
		wantCode(t, err, agency.CodeBranchExists)
		w.git.discoverErr = nil
		wantSpared(t, w)
	}
}

// wantSpared removes the only run with its branch, and fails unless fix/login stays.
func wantSpared(t *testing.T, w *world) {
	t.Helper()
	if w.git.branches["fix/login"] == "" {
		t.Error("the undo deleted the branch")
	}
	runs, err := w.store.Runs(t.Context(), agency.Filter{Removed: true})
	if err != nil || len(runs) != 1 {
		t.Fatalf("got %+v and %v", runs, err)
	}
	got, err := w.sup.RemoveRun(t.Context(), supervisor.RemoveRequest{Ref: string(runs[0].ID), DeleteBranch: true})
	if err != nil {
		t.Fatal(err)
	}
	if w.git.branches["fix/login"] != baseCommit || got.Branch != "fix/login" {
		t.Errorf("rm deleted the branch: %v, %+v", w.git.branches, got)
	}
	if !slices.ContainsFunc(got.Warnings, func(text string) bool { return strings.Contains(text, "branch fix/login stays") }) {
		t.Errorf("rm does not say that it stays: %q", got.Warnings)
	}
}

// A git that was killed while it made a worktree, and again while the creation was undone, leaves a
// folder that is no worktree. No agent was there, so rm does not ask to give its work up.
func TestRemoveAHalfMadeWorktree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.git.AddWorktreeFunc = func(path string) error {
			w.git.discoverErr = errBoom
			return errors.Join(errBoom, os.MkdirAll(path, 0o700))
		}
		_, err := w.createRun(t.Context(), w.request("fix-login"))
		wantCode(t, err, agency.CodeCleanupFailed)
		synctest.Wait()
		w.git.discoverErr, w.git.inspectErr = nil, errBoom
		got, err := w.sup.RemoveRun(t.Context(), supervisor.RemoveRequest{Ref: "fix-login"})
		if err != nil || got.Already {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

// A removal does not wait for the end of a creation, which may take minutes.
func TestRemoveWhileItIsCreated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		made := make(chan struct{})
		w.git.AddWorktreeFunc = func(string) error { <-made; return nil }
		w.tmux.OnStart = func(l agency.Launch) error { return w.wrap(l).begin() }
		w.call(func() { w.create("fix-login") })
		time.Sleep(time.Second)
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := w.sup.RemoveRun(ctx, supervisor.RemoveRequest{Ref: "fix-login"})
		if !agency.IsCode(err, agency.CodeInvalidState) || time.Since(begin) > 0 {
			t.Errorf("after %s: %v", time.Since(begin), err)
		}
		close(made)
		w.calls.Wait()
	})
}
