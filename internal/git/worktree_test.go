package git_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/git"
	"agency/test/fixture"
)

func TestWorktreeLife(t *testing.T) {
	t.Parallel()
	for _, name := range oddNames {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, base := newGit(), filepath.Join(tempDir(t), name)
			newRepo(t, filepath.Join(base, "repo"))
			sh(t, filepath.Join(base, "repo"), "tag", "agency/x") // a tag of the same name does not matter
			repo, err := g.Discover(t.Context(), filepath.Join(base, "repo"))
			check(t, err)
			before := fingerprint(t, repo.Root)
			path := filepath.Join(base, "worktrees", name)
			commit := sh(t, repo.Root, "rev-parse", "HEAD~1")
			wantWorktree(t, g, repo, path, "agency/x", false)
			check(t, g.AddWorktree(t.Context(), repo, path, "agency/x", commit, agency.OwnPrograms))
			wantWorktree(t, g, repo, path, "agency/x", true)
			if got := sh(t, path, "rev-parse", "HEAD"); got != commit {
				t.Errorf("the worktree is at %s, want %s", got, commit)
			}
			if diff := cmp.Diff(before, fingerprint(t, repo.Root)); diff != "" {
				t.Errorf("the user's checkout changed:\n%s", diff)
			}
			write(t, filepath.Join(path, "a"), "changed")
			for range 2 {
				check(t, g.RemoveWorktree(t.Context(), repo, path))
				wantWorktree(t, g, repo, path, "agency/x", false)
			}
			check(t, g.DeleteBranch(t.Context(), repo, "agency/x"))
			wantNothingLeft(t, repo, path, "agency/x")
		})
	}
}

// wantWorktree checks that the worktree of a branch exists at path, or does not exist at all.
func wantWorktree(t *testing.T, g *git.Git, repo agency.Repo, path, branch string, exists bool) {
	t.Helper()
	want := ""
	if exists {
		want = path
	}
	if at, err := g.Worktree(t.Context(), repo, path); err != nil || at != want {
		t.Errorf("the worktree is at %q, %v, want %q", at, err, want)
	}
	if !exists {
		return
	}
	if got := sh(t, path, "branch", "--show-current"); got != branch {
		t.Errorf("the worktree is on %q, want %q", got, branch)
	}
}

// wantNothingLeft checks that no worktree, no entry of it and no branch is left.
func wantNothingLeft(t *testing.T, repo agency.Repo, path, branch string) {
	t.Helper()
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the worktree is there: %v", err)
	}
	if entries, _ := os.ReadDir(filepath.Join(repo.CommonDir, "worktrees")); len(entries) > 0 {
		t.Errorf("git still knows %v", entries)
	}
	if out, err := try(repo.Root, "rev-parse", "--verify", "--quiet", "refs/heads/"+branch); err == nil {
		t.Errorf("the branch is there: %s", out)
	}
}

func TestAddWorktreeInBareRepository(t *testing.T) {
	t.Parallel()
	g, base := newGit(), tempDir(t)
	newRepo(t, filepath.Join(base, "origin"))
	sh(t, base, "clone", "-q", "--bare", "origin", "bare")
	repo, err := g.Discover(t.Context(), filepath.Join(base, "bare"))
	check(t, err)
	path := filepath.Join(base, "wt")
	check(t, g.AddWorktree(t.Context(), repo, path, "b", "main", agency.OwnPrograms))
	wantWorktree(t, g, repo, path, "b", true)
	check(t, g.RemoveWorktree(t.Context(), repo, path))
}

func TestAddWorktreeTracksNothing(t *testing.T) {
	t.Parallel()
	g, base := newGit(), tempDir(t)
	newRepo(t, filepath.Join(base, "origin"))
	sh(t, base, "clone", "-q", "origin", "clone")
	repo, err := g.Discover(t.Context(), filepath.Join(base, "clone"))
	check(t, err)
	sh(t, repo.Root, "config", "branch.autoSetupMerge", "always")
	check(t, g.AddWorktree(t.Context(), repo, filepath.Join(base, "wt"), "b", "origin/main", agency.OwnPrograms))
	if out, err := try(repo.Root, "rev-parse", "--verify", "b@{upstream}"); err == nil {
		t.Errorf("the branch tracks %s", out)
	}
}

// Whatever fails, existing files stay and new ones are removed.
func TestAddWorktreeFails(t *testing.T) {
	t.Parallel()
	t.Run("branch exists", func(t *testing.T) {
		t.Parallel()
		g, repo := setup(t)
		path := filepath.Join(tempDir(t), "wt")
		sh(t, repo.Root, "branch", "mine")
		wantCode(t, g.AddWorktree(t.Context(), repo, path, "mine", "HEAD", agency.OwnPrograms), agency.CodeBranchExists)
		sh(t, repo.Root, "rev-parse", "--verify", "refs/heads/mine")
	})
	t.Run("path exists", func(t *testing.T) {
		t.Parallel()
		g, repo := setup(t)
		path := filepath.Join(tempDir(t), "wt")
		write(t, filepath.Join(path, "precious"), "")
		wantCode(t, g.AddWorktree(t.Context(), repo, path, "b", "HEAD", agency.OwnPrograms), agency.CodeWorktreeFailed)
		if _, err := os.Lstat(filepath.Join(path, "precious")); err != nil {
			t.Error(err)
		}
		check(t, os.RemoveAll(path))
		wantNothingLeft(t, repo, path, "b")
	})
	t.Run("parent is a file", func(t *testing.T) {
		t.Parallel()
		g, repo := setup(t)
		file := filepath.Join(tempDir(t), "file")
		write(t, file, "")
		wantCode(t, g.AddWorktree(t.Context(), repo, filepath.Join(file, "wt"), "b", "HEAD", agency.OwnPrograms), agency.CodeWorktreeFailed)
		if entries, _ := os.ReadDir(filepath.Join(repo.CommonDir, "worktrees")); len(entries) > 0 {
			t.Errorf("git still knows %v", entries)
		}
	})
}

// When the user's hook fails, or the request is given up while it runs, nothing is left.
func TestAddWorktreeWhoseHookFails(t *testing.T) {
	t.Parallel()
	t.Run("hook fails", func(t *testing.T) {
		t.Parallel()
		g, repo := setup(t)
		hook(t, repo, "post-checkout", `printf 'first\nno \033[31mway\r\n' >&2; exit 3`)
		path := filepath.Join(tempDir(t), "wt")
		err := g.AddWorktree(t.Context(), repo, path, "b", "HEAD", agency.OwnPrograms)
		wantCode(t, err, agency.CodeWorktreeFailed)
		e := agency.AsError(err)
		if !strings.HasSuffix(e.Message, "hook post-checkout fails: no [31mway") || e.Hint == "" {
			t.Errorf("message is %q, want the hook and its last line", e.Message)
		}
		wantNothingLeft(t, repo, path, "b")
	})
	t.Run("cancelled in the middle", func(t *testing.T) {
		t.Parallel()
		g, repo := setup(t)
		ready := filepath.Join(repo.CommonDir, "ready")
		hook(t, repo, "post-checkout", `echo > "`+ready+`"; sleep 1000`)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer cancel()
			waitFor(t, "the hook", func() bool { _, err := os.Stat(ready); return err == nil })
		}()
		path := filepath.Join(tempDir(t), "wt")
		err := g.AddWorktree(ctx, repo, path, "b", "HEAD", agency.OwnPrograms)
		wantCode(t, err, agency.CodeWorktreeFailed)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error is %v, want one that wraps context.Canceled", err)
		}
		wantNothingLeft(t, repo, path, "b")
	})
}

func TestAddWorktreesAtOnce(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	base := tempDir(t)
	path := func(i int) string { return filepath.Join(base, fmt.Sprint(i), "same-name") }
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			if err := g.AddWorktree(t.Context(), repo, path(i), fmt.Sprintf("agency/%d", i), "HEAD", agency.OwnPrograms); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i := range 6 {
		wantWorktree(t, g, repo, path(i), fmt.Sprintf("agency/%d", i), true)
		wg.Go(func() {
			if err := g.RemoveWorktree(t.Context(), repo, path(i)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if entries, _ := os.ReadDir(filepath.Join(repo.CommonDir, "worktrees")); len(entries) > 0 {
		t.Errorf("git still knows %v", entries)
	}
}

// A git that meets another worktree at the moment of its removal fails before it has changed
// anything, and is repeated.
func TestRemoveWorktreeBesideAnother(t *testing.T) {
	g, repo := setup(t)
	real, err := exec.LookPath("git")
	check(t, err)
	bin := tempDir(t)
	for _, said := range []string{
		"Invalid path '" + repo.CommonDir + "/worktrees/other': No such file or directory",
		"failed to read " + repo.CommonDir + "/worktrees/other/commondir: Success",
	} {
		path := filepath.Join(tempDir(t), "wt")
		check(t, g.AddWorktree(t.Context(), repo, path, "b", "HEAD", agency.OwnPrograms))
		check(t, fixture.WriteProgram(filepath.Join(bin, "git"), fmt.Sprintf(`#!/bin/sh
case "$*" in *"worktree remove"*) rm %q; echo "fatal: %s" >&2; exit 128 ;; esac
exec %q "$@"
`, filepath.Join(bin, "git"), said, real)))
		t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
		check(t, g.RemoveWorktree(t.Context(), repo, path))
		check(t, g.DeleteBranch(t.Context(), repo, "b"))
		wantNothingLeft(t, repo, path, "b")
	}
}

// A worktree that the user moved is found, whatever it has checked out.
func TestMovedWorktree(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	path, moved := filepath.Join(tempDir(t), "wt"), filepath.Join(tempDir(t), "else where")
	check(t, g.AddWorktree(t.Context(), repo, path, "b", "HEAD", agency.OwnPrograms))
	sh(t, path, "checkout", "-q", "--detach")
	sh(t, repo.Root, "worktree", "move", path, moved)
	at, err := g.Worktree(t.Context(), repo, path)
	check(t, err)
	if at != moved {
		t.Errorf("the worktree is at %q, want %q", at, moved)
	}
	check(t, os.RemoveAll(moved))
	wantWorktree(t, g, repo, path, "b", false)
}

// The folder of the worktrees was moved, and a link left in its place.
func TestWorktreeBehindALink(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	base := tempDir(t)
	path := filepath.Join(base, "data", "wt")
	check(t, os.Mkdir(filepath.Dir(path), 0o700))
	check(t, g.AddWorktree(t.Context(), repo, path, "b", "HEAD", agency.OwnPrograms))
	check(t, os.Rename(filepath.Join(base, "data"), filepath.Join(base, "moved")))
	wantWorktree(t, g, repo, path, "b", false)
	check(t, os.Symlink("moved", filepath.Join(base, "data")))
	wantWorktree(t, g, repo, path, "b", true)
	check(t, g.RemoveWorktree(t.Context(), repo, path))
	check(t, g.DeleteBranch(t.Context(), repo, "b"))
	wantNothingLeft(t, repo, path, "b")
}

// A git that was killed while it made a worktree leaves one that is locked with "initializing".
func TestUnfinishedWorktree(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	path := filepath.Join(tempDir(t), "wt")
	made := func(want bool) {
		t.Helper()
		if got, err := g.Made(t.Context(), repo, path); got != want || err != nil {
			t.Errorf("made: %v, %v; want %v", got, err, want)
		}
	}
	made(false)
	check(t, os.Mkdir(path, 0o700))
	made(false)
	check(t, g.AddWorktree(t.Context(), repo, path, "b", "HEAD", agency.OwnPrograms))
	made(true)
	write(t, filepath.Join(repo.CommonDir, "worktrees", "wt", "locked"), "initializing")
	wantWorktree(t, g, repo, path, "b", false)
	made(false)
	check(t, g.RemoveWorktree(t.Context(), repo, path))
	check(t, g.DeleteBranch(t.Context(), repo, "b"))
	wantNothingLeft(t, repo, path, "b")
}

// A git that was killed even earlier leaves an entry that no other git can use.
func TestWorktreeCutOffAtItsBeginning(t *testing.T) {
	t.Parallel()
	for name, left := range map[string]func(entry string) error{
		"no commondir":    func(entry string) error { return os.Remove(filepath.Join(entry, "commondir")) },
		"empty commondir": func(entry string) error { return os.WriteFile(filepath.Join(entry, "commondir"), nil, 0o600) },
		"no HEAD": func(entry string) error {
			return errors.Join(os.Remove(filepath.Join(entry, "commondir")), os.Remove(filepath.Join(entry, "HEAD")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, repo := setup(t)
			path, other := filepath.Join(tempDir(t), "wt"), filepath.Join(tempDir(t), "other")
			check(t, g.AddWorktree(t.Context(), repo, path, "b", "HEAD", agency.OwnPrograms))
			entry := filepath.Join(repo.CommonDir, "worktrees", "wt")
			write(t, filepath.Join(entry, "locked"), "initializing")
			check(t, left(entry))
			check(t, g.AddWorktree(t.Context(), repo, other, "c", "HEAD", agency.OwnPrograms))
			wantWorktree(t, g, repo, path, "b", false)
			for at, branch := range map[string]string{path: "b", other: "c"} {
				check(t, g.RemoveWorktree(t.Context(), repo, at))
				check(t, g.DeleteBranch(t.Context(), repo, branch))
			}
			wantNothingLeft(t, repo, path, "b")
		})
	}
}

func TestRemoveWorktree(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(t *testing.T, repo agency.Repo, path string)
		want    agency.Code
	}{
		"files gone": {func(t *testing.T, _ agency.Repo, path string) { check(t, os.RemoveAll(path)) }, ""},
		".git gone":  {func(t *testing.T, _ agency.Repo, path string) { check(t, os.Remove(filepath.Join(path, ".git"))) }, ""},
		"unknown": {func(t *testing.T, repo agency.Repo, _ string) {
			check(t, os.RemoveAll(filepath.Join(repo.CommonDir, "worktrees")))
		}, ""},
		"no repository": {func(t *testing.T, repo agency.Repo, _ string) { check(t, os.RemoveAll(repo.Root)) }, ""},
		"read-only folder": {func(t *testing.T, _ agency.Repo, path string) {
			write(t, filepath.Join(path, "mod", "x"), "")
			check(t, os.Chmod(filepath.Join(path, "mod"), 0o555))
		}, ""},
		"link inside": {func(t *testing.T, repo agency.Repo, path string) {
			check(t, os.Symlink(repo.Root, filepath.Join(path, "out")))
		}, ""},
		"checked-out submodule": {func(t *testing.T, _ agency.Repo, path string) {
			library := filepath.Join(tempDir(t), "library")
			newRepo(t, library)
			sh(t, path, "submodule", "add", "-q", library, "lib")
		}, ""},
		"locked":       {func(t *testing.T, repo agency.Repo, path string) { sh(t, repo.Root, "worktree", "lock", path) }, agency.CodeCleanupFailed},
		"a repository": {func(t *testing.T, _ agency.Repo, path string) { check(t, os.RemoveAll(path)); newRepo(t, path) }, agency.CodeCleanupFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, repo := setup(t)
			path := filepath.Join(tempDir(t), "wt")
			check(t, g.AddWorktree(t.Context(), repo, path, "b", "HEAD", agency.OwnPrograms))
			c.prepare(t, repo, path)
			err := g.RemoveWorktree(t.Context(), repo, path)
			_, lost := os.Lstat(filepath.Join(path, "a"))
			if c.want != "" {
				wantCode(t, err, c.want)
				check(t, lost)
				return
			}
			check(t, err)
			if name == "no repository" {
				if lost == nil {
					t.Error("the files are there")
				}
				return
			}
			check(t, g.DeleteBranch(t.Context(), repo, "b"))
			wantNothingLeft(t, repo, path, "b")
			if _, err := os.Lstat(filepath.Join(repo.Root, "a")); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRemoveMainWorktree(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	wantCode(t, g.RemoveWorktree(t.Context(), repo, repo.Root), agency.CodeCleanupFailed)
	if _, err := os.Lstat(filepath.Join(repo.Root, "a")); err != nil {
		t.Error(err)
	}
}

// The user's other worktrees are never removed, not even while their folder is missing.
func TestRemoveWorktreeLeavesOthers(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	base := tempDir(t)
	path, theirs := filepath.Join(base, "wt"), filepath.Join(base, "theirs")
	check(t, g.AddWorktree(t.Context(), repo, path, "b", "HEAD", agency.OwnPrograms))
	sh(t, repo.Root, "worktree", "add", "-q", "-b", "theirs", theirs)
	check(t, os.Rename(theirs, theirs+".away"))
	check(t, g.RemoveWorktree(t.Context(), repo, path))
	check(t, os.Rename(theirs+".away", theirs))
	wantWorktree(t, g, repo, theirs, "theirs", true)
}

func TestRepair(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	base := tempDir(t)
	path := filepath.Join(base, "new\nline")
	check(t, g.AddWorktree(t.Context(), repo, path, "b", "HEAD", agency.OwnPrograms))
	moved := filepath.Join(base, "moved")
	check(t, os.Rename(repo.Root, moved))
	repo, err := g.Discover(t.Context(), moved)
	check(t, err)
	check(t, g.Repair(t.Context(), repo, []string{path}))
	if got := sh(t, path, "rev-parse", "--abbrev-ref", "HEAD"); got != "b" {
		t.Errorf("the worktree is on %q", got)
	}
	wantWorktree(t, g, repo, path, "b", true)
}

func FuzzParseWorktrees(f *testing.F) {
	for _, s := range []string{
		"", "\x00", "worktree /a\x00bare\x00\x00", "worktree /a\nb\x00HEAD 1\x00branch refs/heads/x\x00locked initializing\x00\x00",
		"worktree /a\x00\x00worktree /b\x00detached\x00prunable gone\x00\x00", "locked\x00\x00worktree", "worktree \x00locked a\nb",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, out string) {
		if got, most := len(git.ParseWorktrees(out)), strings.Count(out, "worktree "); got > most {
			t.Errorf("%q has %d worktrees, at most %d are there", out, got, most)
		}
	})
}

// Where no program may run, none does: neither hooks nor filters, whatever part of the configuration
// names them. The files come as they are stored.
func TestAddWorktreeWithoutPrograms(t *testing.T) {
	t.Parallel()
	g, root := newGit(), filepath.Join(tempDir(t), "repo")
	newRepo(t, root)
	repo, err := g.Discover(t.Context(), root)
	check(t, err)
	ran := filepath.Join(t.TempDir(), "ran")
	included := filepath.Join(t.TempDir(), "included")
	program := "sh -c 'cat; touch " + ran + "'"
	for _, name := range []string{"plain", "a=b"} {
		sh(t, repo.Root, "config", "filter."+name+".smudge", program)
	}
	sh(t, repo.Root, "config", "--file", included, "filter.later.smudge", program)
	sh(t, repo.Root, "config", "includeIf.onbranch:agency/**.path", included)
	write(t, filepath.Join(repo.CommonDir, "hooks", "post-checkout"), "#!/bin/sh\ntouch "+ran+"\n")
	check(t, os.Chmod(filepath.Join(repo.CommonDir, "hooks", "post-checkout"), 0o755))
	write(t, filepath.Join(repo.Root, ".gitattributes"), "*.1 filter=plain\n*.2 filter=later\n*.3 filter=\"a=b\"\n")
	for _, name := range []string{"a.1", "a.2", "a.3"} {
		write(t, filepath.Join(repo.Root, name), "stored\n")
	}
	sh(t, repo.Root, "add", ".")
	sh(t, repo.Root, "commit", "-qm", "filtered")
	path := filepath.Join(tempDir(t), "wt")
	check(t, g.AddWorktree(t.Context(), repo, path, "agency/x", "HEAD", agency.NoPrograms))
	for _, name := range []string{"a.1", "a.2", "a.3"} {
		if data, err := os.ReadFile(filepath.Join(path, name)); err != nil || string(data) != "stored\n" {
			t.Errorf("%s holds %q: %v", name, data, err)
		}
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a program ran")
	}
	if head := sh(t, path, "symbolic-ref", "HEAD"); strings.TrimSpace(head) != "refs/heads/agency/x" {
		t.Errorf("HEAD is %s", head)
	}
}
