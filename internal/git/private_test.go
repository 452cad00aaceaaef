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

// failingGit is a git that fails when it is asked for the command that the variable FAILING names,
// with the words of WORDS and the exit status of STATUS.
const failingGit = `#!/bin/sh
case " $* " in *" $FAILING "*) echo "$WORDS" >&2; exit "$STATUS" ;; esac
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

// A git that fails for want of room, memory or files does not show that the agent damaged its
// commits: they are imported when git works again.
func TestImportWhileGitFails(t *testing.T) {
	base, g, repo, worktree, dir := sandboxed(t)
	sh(t, repo.Root, "worktree", "add", "-q", "-b", "agency/x", worktree)
	private, make, err := g.Private(t.Context(), repo, worktree, "agency/x", dir)
	check(t, err)
	check(t, make())
	agent := filepath.Join(base, "agent")
	sh(t, base, "clone", "-q", "--branch", "agency/x", repo.Root, agent)
	replaceGit(t, base, failingGit)

	take := func() error { return g.Import(t.Context(), repo, worktree, "agency/x", "refs/agency/sandbox/r", dir) }
	branch := func() string { return strings.TrimSpace(sh(t, repo.Root, "rev-parse", "agency/x")) }
	for _, failure := range []struct{ command, status, words, want string }{
		{"unpack-objects", "128", "error: unable to create temporary file: No space left on device\nfatal: failed to write object", "failed to write object"},
		{"unpack-objects", "128", "error: file write error: Disk quota exceeded", "quota exceeded"},
		{"unpack-objects", "128", "fatal: Out of memory, malloc failed (tried to allocate 4097 bytes)", "pack: git unpack-objects: Out of memory"},
		{"unpack-objects", "1", "error: unable to create temporary file: Too many open files", "Too many open files"},
		{"rev-list", "128", "fatal: mmap failed: Cannot allocate memory", "Cannot allocate memory"},
		{"rev-list", "128", "fatal: bad object refs/heads/main", "bad object refs/heads/main"},
		{"rev-parse", "1", "", "git cannot read the commit of refs/heads/agency/x"},
	} {
		sh(t, agent, "commit", "-q", "--allow-empty", "-m", failure.want)
		sh(t, agent, "repack", "-qad")
		packs, err := filepath.Glob(filepath.Join(agent, ".git/objects/pack/*.pack"))
		check(t, err)
		check(t, os.Link(packs[0], filepath.Join(private.Dir, "objects/pack", filepath.Base(packs[0]))))
		before, commit := branch(), strings.TrimSpace(sh(t, agent, "rev-parse", "HEAD"))
		write(t, filepath.Join(private.Dir, "refs/heads/agency/x"), commit+"\n")

		t.Setenv("FAILING", failure.command)
		t.Setenv("STATUS", failure.status)
		t.Setenv("WORDS", failure.words)
		err = take()
		t.Setenv("FAILING", "none")
		if err == nil || !strings.Contains(err.Error(), failure.want) || branch() != before {
			t.Errorf("%s: got %v, the branch is at %s", failure.words, err, branch())
		}
		check(t, take())
		if branch() != commit {
			t.Errorf("after %q: the branch is at %s, want %s", failure.words, branch(), commit)
		}
	}
}

// A pack that an agent damaged, or that claims to hold an exabyte, does not keep its run from being
// used: the branch stays where it is.
func TestImportOfDamage(t *testing.T) {
	_, g, repo, worktree, dir := sandboxed(t)
	sh(t, repo.Root, "worktree", "add", "-q", "-b", "agency/x", worktree)
	private, make, err := g.Private(t.Context(), repo, worktree, "agency/x", dir)
	check(t, err)
	check(t, make())
	write(t, filepath.Join(private.Dir, "objects/pack/pack-a.pack"), "junk")
	write(t, filepath.Join(private.Dir, "objects/pack/pack-b.pack"), "PACK\x00\x00\x00\x02\x00\x00\x00\x01\x90"+strings.Repeat("\x80", 8)+"\x01")
	write(t, filepath.Join(private.Dir, "refs/heads/agency/x"), strings.Repeat("1", 40)+"\n")
	before := sh(t, repo.Root, "rev-parse", "agency/x")
	check(t, g.Import(t.Context(), repo, worktree, "agency/x", "refs/agency/sandbox/r", dir))
	if after := sh(t, repo.Root, "rev-parse", "agency/x"); after != before {
		t.Errorf("the branch is at %s", after)
	}
}

// An agent that names a missing commit in the HEAD of its own worktree does not keep the commits of
// other runs from being imported.
func TestImportBesideDamagedHead(t *testing.T) {
	base, g, repo, worktree, dir := sandboxed(t)
	sh(t, repo.Root, "worktree", "add", "-q", "-b", "agency/x", worktree)
	sh(t, repo.Root, "worktree", "add", "-q", "-b", "agency/y", filepath.Join(base, "other"))
	private, make, err := g.Private(t.Context(), repo, worktree, "agency/x", dir)
	check(t, err)
	check(t, make())
	write(t, filepath.Join(repo.CommonDir, "worktrees/other/HEAD"), strings.Repeat("1", 40)+"\n")
	commit := strings.TrimSpace(sh(t, repo.Root, "commit-tree", "-p", "main", "-m", "of the agent", "main^{tree}"))
	write(t, filepath.Join(private.Dir, "refs/heads/agency/x"), commit+"\n")
	check(t, g.Import(t.Context(), repo, worktree, "agency/x", "refs/agency/sandbox/r", dir))
	if branch := strings.TrimSpace(sh(t, repo.Root, "rev-parse", "agency/x")); branch != commit {
		t.Errorf("the branch is at %s, want %s", branch, commit)
	}
}
