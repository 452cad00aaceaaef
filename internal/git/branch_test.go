package git_test

import (
	"os"
	"path/filepath"
	"testing"

	"agency"
	"agency/internal/git"
)

// undoable is a repository with the branch that AddWorktree made, whose worktree is gone again.
func undoable(t *testing.T) (g *git.Git, repo agency.Repo, path, commit string) {
	t.Helper()
	g, base := newGit(), tempDir(t)
	newRepo(t, filepath.Join(base, "repo"))
	repo, err := g.Discover(t.Context(), filepath.Join(base, "repo"))
	check(t, err)
	path, commit = filepath.Join(base, "r_1"), sh(t, repo.Root, "rev-parse", "HEAD")
	check(t, g.AddWorktree(t.Context(), repo, path, "fix", commit, agency.OwnPrograms))
	check(t, g.RemoveWorktree(t.Context(), repo, path))
	return g, repo, path, commit
}

func TestUndoBranch(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		then       []string // what the user does with the branch
		made, left bool
	}{
		"unused":                    {nil, true, false},
		"moved":                     {[]string{"update-ref", "refs/heads/fix", "HEAD~1"}, true, true},
		"checked out":               {[]string{"checkout", "-q", "fix"}, true, true},
		"deleted":                   {[]string{"branch", "-D", "fix"}, false, false},
		"deleted and made again":    {[]string{"-c", "alias.x=!git branch -D fix && git branch fix HEAD", "x"}, false, true},
		"made again without a log":  {[]string{"-c", "core.logAllRefUpdates=false", "-c", "alias.x=!git branch -D fix && git branch fix HEAD", "x"}, false, true},
		"moved there and back":      {[]string{"-c", "alias.x=!git branch -f fix HEAD~1 && git branch -f fix HEAD", "x"}, true, true},
		"in a worktree of the user": {[]string{"worktree", "add", "-q", "../mine", "fix"}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, repo, path, commit := undoable(t)
			if test.then != nil {
				sh(t, repo.Root, test.then...)
			}
			made, err := g.MadeBranch(t.Context(), repo, path, "fix")
			if made != test.made || err != nil {
				t.Errorf("MadeBranch = %v, %v", made, err)
			}
			left, err := g.UndoBranch(t.Context(), repo, path, "fix", commit)
			there, _ := g.HasBranch(t.Context(), repo, "fix")
			if left != (test.made && test.left) || there != test.left || err != nil {
				t.Errorf("UndoBranch = %v, %v; the branch is there: %v", left, err, there)
			}
		})
	}
}

// Git deletes the reflog of a branch before the branch. When it is killed between, the next undo
// still knows the branch.
func TestUndoBranchCutOff(t *testing.T) {
	t.Parallel()
	g, repo, path, commit := undoable(t)
	lock := filepath.Join(repo.CommonDir, "refs/heads/fix.lock")
	write(t, lock, "")
	if left, err := g.UndoBranch(t.Context(), repo, path, "fix", commit); !left || err == nil {
		t.Fatalf("UndoBranch of a locked branch = %v, %v", left, err)
	}
	check(t, os.Remove(lock))
	check(t, os.Remove(filepath.Join(repo.CommonDir, "logs/refs/heads/fix")))
	left, err := g.UndoBranch(t.Context(), repo, path, "fix", commit)
	if refs := sh(t, repo.Root, "for-each-ref", "refs/heads/fix", "refs/agency"); left || err != nil || refs != "" {
		t.Errorf("UndoBranch = %v, %v; left are %s", left, err, refs)
	}
}

// The branch of one worktree is not that of another, and a branch that cannot be read
// proves nothing.
func TestMadeBranchOfAnother(t *testing.T) {
	t.Parallel()
	g, repo, path, commit := undoable(t)
	if made, err := g.MadeBranch(t.Context(), repo, path+"2", "fix"); made || err != nil {
		t.Errorf("MadeBranch = %v, %v", made, err)
	}
	write(t, filepath.Join(repo.CommonDir, "refs/heads/fix"), "nonsense\n")
	if made, err := g.MadeBranch(t.Context(), repo, path, "fix"); err == nil {
		t.Errorf("MadeBranch of a branch that cannot be read = %v", made)
	}
	if left, err := g.UndoBranch(t.Context(), repo, path, "fix", commit); err == nil {
		t.Errorf("UndoBranch of a branch that cannot be read = %v", left)
	}
}
