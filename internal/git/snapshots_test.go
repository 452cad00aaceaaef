package git_test

import (
	"path/filepath"
	"testing"

	"agency"
)

// Snapshots are listed by number, and only those of the run.
func TestSnapshots(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	id := agency.RunID("r_01")
	for _, ref := range []string{"r_01/1", "r_01/2", "r_01/10", "r_01/nonsense", "r_02/1"} {
		if _, err := g.Snapshot(t.Context(), repo, repo.Root, "", "refs/agency/snapshots/"+ref, "work "+ref); err != nil {
			t.Fatal(err)
		}
	}
	found, err := g.Snapshots(t.Context(), repo, id)
	if err != nil {
		t.Fatal(err)
	}
	numbers := []int{}
	for _, s := range found {
		numbers = append(numbers, s.Number)
		if s.Commit == "" || s.At.IsZero() || s.Message != "worktree: work r_01/"+filepath.Base(s.Ref) {
			t.Errorf("snapshot %+v", s)
		}
	}
	if len(numbers) != 3 || numbers[0] != 1 || numbers[1] != 2 || numbers[2] != 10 {
		t.Errorf("numbers %v", numbers)
	}
	if none, err := g.Snapshots(t.Context(), repo, "r_03"); err != nil || len(none) != 0 {
		t.Errorf("snapshots of nothing: %v, %v", none, err)
	}
}

// A branch goes when a commit has all of it, and stays when it has something of its own.
func TestDeleteBranchIn(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	tip := sh(t, repo.Root, "rev-parse", "main")
	sh(t, repo.Root, "branch", "older", "main~1")
	sh(t, repo.Root, "branch", "own", sh(t, repo.Root, "commit-tree", "-p", "main", "-m", "own", "main^{tree}"))
	for branch, stays := range map[string]bool{"older": false, "own": true, "never": false} {
		check(t, g.DeleteBranchIn(t.Context(), repo, branch, tip))
		if there, err := g.HasBranch(t.Context(), repo, branch); err != nil || there != stays {
			t.Errorf("%s is there: %v, %v", branch, there, err)
		}
	}
}

// A branch is deleted only if it is at the commit that the caller names.
func TestDeleteBranchAt(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	base := sh(t, repo.Root, "rev-parse", "HEAD")
	sh(t, repo.Root, "branch", "empty")
	sh(t, repo.Root, "branch", "work")
	sh(t, repo.Root, "commit", "--allow-empty", "-m", "more")
	sh(t, repo.Root, "branch", "-f", "work", "HEAD")
	for _, branch := range []string{"empty", "work", "missing"} {
		if err := g.DeleteBranchAt(t.Context(), repo, branch, base); err != nil {
			t.Errorf("%s: %v", branch, err)
		}
	}
	if got := sh(t, repo.Root, "branch", "--list", "empty", "work", "missing", "--format=%(refname:short)"); got != "work" {
		t.Errorf("branches left: %q", got)
	}
}
