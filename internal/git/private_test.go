package git_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agency"
	"agency/internal/git"
)

// dyingGit is a git that is killed when it is asked for the command that the variable KILLED names.
const dyingGit = `#!/bin/sh
case " $* " in *" $KILLED "*) kill -9 $$ ;; esac
exec "$REAL_GIT" "$@"
`

// sandboxed returns a repository in the folder base, the place of a worktree that is not made yet, and
// the folder for the repository of its sandbox.
func sandboxed(t *testing.T) (base string, g *git.Git, repo agency.Repo, worktree, dir string) {
	t.Helper()
	base = tempDir(t)
	newRepo(t, filepath.Join(base, "repo"))
	g = git.New(30*time.Second, scratch, scratch)
	repo, err := g.Discover(t.Context(), filepath.Join(base, "repo"))
	check(t, err)
	worktree, dir = filepath.Join(base, "work"), filepath.Join(base, "sandbox")
	check(t, os.Mkdir(dir, 0o700))
	return base, g, repo, worktree, dir
}

// A git that is killed while agency takes over the branches of an agent proves nothing about them:
// they are saved the next time.
func TestImportWhileGitIsKilled(t *testing.T) {
	base, g, repo, worktree, dir := sandboxed(t)
	sh(t, repo.Root, "worktree", "add", "-q", "-b", "agency/x", worktree)
	private, make, err := g.Private(t.Context(), repo, worktree, "agency/x", dir)
	check(t, err)
	check(t, make())
	head := strings.TrimSpace(sh(t, repo.Root, "rev-parse", "HEAD"))
	replaceGit(t, base, dyingGit)

	take := func() error { return g.Import(t.Context(), repo, worktree, "agency/x", "refs/agency/sandbox/r", dir) }
	for _, command := range []string{"check-ref-format", "rev-list", "update-ref"} {
		write(t, filepath.Join(private.Dir, "refs/heads", command), head+"\n") // a branch of the agent
		t.Setenv("KILLED", command)
		if err := take(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Errorf("%s is killed: got %v", command, err)
		}
		t.Setenv("KILLED", "none")
		check(t, take())
		if saved := strings.TrimSpace(sh(t, repo.Root, "rev-parse", "refs/agency/sandbox/r/heads/"+command)); saved != head {
			t.Errorf("%s is saved as %q", command, saved)
		}
	}
}

// A repository for a sandbox whose making was cut off has nothing to import, and is made anew.
func TestImportOfAPart(t *testing.T) {
	_, g, repo, worktree, dir := sandboxed(t)
	_, make, err := g.Private(t.Context(), repo, worktree, "agency/x", dir)
	check(t, err)
	take := func() error { return g.Import(t.Context(), repo, worktree, "agency/x", "refs/agency/sandbox/r", dir) }
	if err := make(); err == nil || !strings.Contains(err.Error(), "agency/x has no commit") {
		t.Errorf("without the worktree: got %v", err)
	}
	check(t, take())
	sh(t, repo.Root, "worktree", "add", "-q", "-b", "agency/x", worktree)
	check(t, make())
	check(t, take())
	if _, err := os.Stat(filepath.Join(dir, "synced")); err != nil {
		t.Error(err)
	}
}
