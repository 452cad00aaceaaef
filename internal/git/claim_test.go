package git_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agency/internal/git"
)

// killingGit is a git that makes the lock of a ref and dies when it is asked to write that ref.
const killingGit = `#!/bin/sh
case " $* " in
*" update-ref "*|*" branch "*)
	if rm "$DIE" 2>/dev/null; then : >"$LOCK"; kill -9 $$; fi ;;
esac
exec "$REAL_GIT" "$@"
`

// replaceGit makes a script the git of the test. The script finds the real one in REAL_GIT.
func replaceGit(t *testing.T, base, script string) {
	t.Helper()
	real, err := exec.LookPath("git")
	check(t, err)
	bin := filepath.Join(base, "bin")
	check(t, os.Mkdir(bin, 0o700))
	write(t, filepath.Join(bin, "git"), script)
	check(t, os.Chmod(filepath.Join(bin, "git"), 0o700))
	t.Setenv("REAL_GIT", real)
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
}

// The lock of a ref is removed when a git of agency left it; the lock of another git stays.
func TestLockOfAKilledGit(t *testing.T) {
	base := tempDir(t)
	newRepo(t, filepath.Join(base, "repo"))
	g := git.New(30*time.Second, scratch, scratch)
	g.Claims = filepath.Join(base, "claims")
	repo, err := g.Discover(t.Context(), filepath.Join(base, "repo"))
	check(t, err)
	replaceGit(t, base, killingGit)

	die := filepath.Join(base, "die")
	t.Setenv("DIE", die)
	for ref, work := range map[string]func() error{
		"refs/agency/snapshots/r/1": func() error {
			_, err := g.Snapshot(t.Context(), repo, repo.Root, "", "refs/agency/snapshots/r/1", "m")
			return err
		},
		"refs/heads/agency/x": func() error { return g.CreateBranch(t.Context(), repo, "agency/x", "HEAD") },
	} {
		lock := filepath.Join(repo.CommonDir, ref+".lock")
		check(t, os.MkdirAll(filepath.Dir(lock), 0o700))
		t.Setenv("LOCK", lock)
		write(t, die, "")
		if err := work(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Errorf("%s: got %v", ref, err)
		}
		if _, err := os.Lstat(lock); err == nil {
			t.Errorf("%s: its lock is left", ref)
		}
		write(t, lock, "") // of another git
		if err := work(); err == nil || !strings.Contains(err.Error(), lock) {
			t.Errorf("%s: with the lock of another git: got %v", ref, err)
		}
		check(t, os.Remove(lock))
		check(t, work())
	}
	if left, _ := filepath.Glob(filepath.Join(g.Claims, "*")); len(left) > 0 {
		t.Errorf("claims are left: %v", left)
	}
}

// A git that outlives its daemon keeps its lock.
func TestClaimOfALivingGit(t *testing.T) {
	t.Parallel()
	base := tempDir(t)
	repo := git.Ref(base, "refs/agency/snapshots/r/1")
	g := git.New(time.Second, scratch, scratch)
	g.Claims = filepath.Join(base, "claims")
	lock := filepath.Join(base, "refs", "agency", "snapshots", "r", "1.lock")
	check(t, os.MkdirAll(filepath.Dir(lock), 0o700))
	end, err := g.Claim(t.Context(), repo)
	check(t, err)
	write(t, lock, "")
	check(t, g.FreeClaims(t.Context()))
	if _, err := os.Lstat(lock); err != nil {
		t.Errorf("the lock of a living git: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := g.Claim(ctx, repo); err == nil {
		t.Error("two gits write one ref")
	}
	check(t, end()) // killed, with its daemon
	check(t, g.FreeClaims(t.Context()))
	if _, err := os.Lstat(lock); err == nil {
		t.Error("the lock of a dead git is left")
	}
}
