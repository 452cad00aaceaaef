package git_test

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The locks that can block runs are found, and those of other branches and worktrees are not.
func TestLocks(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	common, paths := repo.CommonDir, map[string]string{}
	for _, name := range []string{"ours", "theirs"} {
		paths[name] = filepath.Join(tempDir(t), name)
		sh(t, repo.Root, "worktree", "add", "-q", "-b", name, paths[name])
	}
	sh(t, repo.Root, "branch", "free")
	want := []string{
		"config.lock", "packed-refs.lock", "refs/heads/ours.lock", "index.lock", "HEAD.lock", "ORIG_HEAD.lock",
		"worktrees/ours/index.lock", "worktrees/ours/HEAD.lock", "worktrees/ours/ORIG_HEAD.lock",
		"refs/agency/snapshots/r_1/1.lock",
	}
	others := []string{"refs/heads/theirs.lock", "refs/heads/never.lock", "worktrees/theirs/index.lock", "refs/agency/snapshots/r_1/2"}
	for _, name := range append(others, want...) {
		path := filepath.Join(common, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	locks, err := g.Locks(repo, []string{"ours"}, []string{paths["ours"], repo.Root, "/nonexistent"})
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, l := range locks {
		if whose := map[bool]string{true: paths["ours"]}[strings.Contains(l.Path, "/worktrees/")]; strings.HasSuffix(l.Path, "HEAD.lock") && l.Worktree != cmp.Or(whose, repo.Root) {
			t.Errorf("%s is said to be of %q", l.Path, l.Worktree)
		}
		got = append(got, strings.TrimPrefix(l.Path, common+"/"))
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	err = g.DeleteBranch(t.Context(), repo, "free")
	if err == nil || !strings.Contains(err.Error(), "packed-refs.lock is in the way; if no git is at work there, remove it (agency doctor)") {
		t.Errorf("a branch whose lock is held: %v", err)
	}
	if err := g.DeleteBranchAt(t.Context(), repo, "never", sh(t, repo.Root, "rev-parse", "HEAD")); err != nil {
		t.Errorf("a branch that was never made: %v", err)
	}
}
