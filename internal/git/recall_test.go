package git_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/git"
)

// recalled asks until the answer about a folder comes without a process of git: a cancelled context
// lets none run.
func recalled(t *testing.T, g *git.Git, dir string) agency.Repo {
	t.Helper()
	none, cancel := context.WithCancel(t.Context())
	cancel()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		_, err := g.Recall(t.Context(), dir)
		check(t, err)
		if repo, err := g.Recall(none, dir); err == nil {
			return repo
		}
		if time.Now().After(deadline) {
			t.Fatalf("git is asked about %s each time", dir)
		}
	}
}

// recallsWhatGitSays asks for the repository of a folder twice after a change.
func recallsWhatGitSays(t *testing.T, g *git.Git, dir, change string) {
	t.Helper()
	for range 2 {
		want, wantErr := g.Discover(t.Context(), dir)
		got, err := g.Recall(t.Context(), dir)
		if diff := cmp.Diff(want, got); diff != "" || (err == nil) != (wantErr == nil) {
			t.Errorf("%s, %s: %v, git says %v (-want +got):\n%s", change, dir, err, wantErr, diff)
		}
	}
}

// What is recalled is what git would say, after every change that matters to git.
func TestRecallIsWhatGitSays(t *testing.T) {
	t.Parallel()
	base := tempDir(t)
	repo, linked, other := filepath.Join(base, "repo"), filepath.Join(base, "linked"), filepath.Join(base, "other")
	newRepo(t, repo)
	newRepo(t, other)
	sh(t, repo, "worktree", "add", "-q", "-b", "l", linked)
	sub, g := filepath.Join(repo, "sub"), newGit()
	found, err := g.Discover(t.Context(), repo)
	check(t, err)
	_, err = g.EnsureID(found, func() string { return "7b0c0f3e-0a4f-4c7e-9a53-0c9b5d3f6a11" })
	check(t, err)
	link := filepath.Join(base, "link")
	check(t, os.Symlink(sub, link))
	for _, change := range []struct {
		what string
		do   func()
		kept []string // what is known without git afterwards, and would be wrong after the next change
	}{
		{"nothing", func() {}, []string{repo, sub, linked, link}},
		{"a commit and a branch", func() { sh(t, repo, "switch", "-qc", "b"); sh(t, repo, "commit", "-q", "--allow-empty", "-m", "x") }, []string{repo, sub, linked, link}},
		{"another identity", func() {
			check(t, g.ReplaceID(found, "0d9d6e5c-33a4-4bb2-8a2a-0e1b7e0b7a22"))
		}, []string{repo, sub, linked, link}},
		{"a repository in the folder", func() { sh(t, sub, "init", "-q") }, []string{repo, sub}},
		{"and none again", func() { check(t, os.RemoveAll(filepath.Join(sub, ".git"))) }, []string{sub}},
		{"a .git that leads elsewhere", func() {
			write(t, filepath.Join(sub, ".git"), "gitdir: "+filepath.Join(other, ".git")+"\n")
		}, []string{sub, link}},
		{"and back", func() { check(t, os.Remove(filepath.Join(sub, ".git"))) }, []string{sub, link}},
		{"a bare repository in the folder", func() { sh(t, sub, "init", "-q", "--bare", ".") }, []string{repo, linked}},
		{"hooks that come with the files", func() { sh(t, repo, "config", "core.hooksPath", ".hooks") }, []string{repo, linked}},
		{"an include of nothing", func() { sh(t, repo, "config", "include.path", "more") }, []string{repo, linked}},
		{"which then is there", func() {
			write(t, filepath.Join(repo, ".git/more"), "[core]\n\thooksPath = other\n")
		}, []string{repo, linked}},
		{"and is gone", func() { sh(t, repo, "config", "--unset", "include.path") }, []string{repo, linked}},
		{"and no hooks", func() { sh(t, repo, "config", "--unset", "core.hooksPath") }, []string{repo, linked}},
		{"its worktree elsewhere", func() { sh(t, repo, "config", "core.worktree", other) }, nil},
		{"and where it was", func() { sh(t, repo, "config", "--unset", "core.worktree") }, []string{repo, linked}},
		{"a link to another folder", func() {
			check(t, os.Remove(link))
			check(t, os.Symlink(other, link))
		}, []string{link, linked}},
		{"the worktree of another repository", func() {
			check(t, os.WriteFile(filepath.Join(linked, ".git"), []byte("gitdir: "+filepath.Join(other, ".git")+"\n"), 0o600))
		}, []string{repo}},
		{"another repository in its place", func() {
			check(t, os.Rename(repo, repo+"-moved"))
			check(t, os.Rename(other, repo))
		}, []string{repo}},
		{"no repository", func() { check(t, os.RemoveAll(filepath.Join(repo, ".git"))) }, nil},
	} {
		change.do()
		for _, dir := range []string{repo, sub, linked, link, base} {
			recallsWhatGitSays(t, g, dir, change.what)
		}
		for _, dir := range change.kept {
			recalled(t, g, dir)
		}
	}
}

// A folder that git was asked about is not asked about again, and one in a linked worktree neither.
func TestRecallAsksOnce(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	linked := filepath.Join(tempDir(t), "linked")
	sh(t, repo.Root, "worktree", "add", "-q", "-b", "l", linked)
	for dir, toplevel := range map[string]string{
		repo.Root: repo.Root, filepath.Join(repo.Root, "sub"): repo.Root, linked: linked, filepath.Join(linked, "sub"): linked,
	} {
		want := repo
		want.Toplevel = toplevel
		if diff := cmp.Diff(want, recalled(t, g, dir)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", dir, diff)
		}
	}
}

// The commit of HEAD is what git says, after every change, and git is not asked about the same
// commit twice.
func TestHeadIsWhatGitSays(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	linked := filepath.Join(tempDir(t), "linked")
	sh(t, repo.Root, "worktree", "add", "-q", "-b", "l", linked, "HEAD~1")
	recalled(t, g, repo.Root)
	recalled(t, g, linked)
	none, cancel := context.WithCancel(t.Context())
	cancel()
	for _, change := range []struct {
		what  string
		do    func()
		asked bool // by git each time
	}{
		{what: "nothing", do: func() {}},
		{what: "a commit", do: func() { sh(t, repo.Root, "commit", "-q", "--allow-empty", "-m", "x") }},
		{what: "another branch", do: func() { sh(t, repo.Root, "switch", "-qc", "a/b", "HEAD~1") }},
		{what: "packed refs", do: func() { sh(t, repo.Root, "pack-refs", "--all") }},
		{what: "a branch that moved", do: func() { sh(t, repo.Root, "reset", "-q", "--soft", "HEAD~1") }},
		{what: "a detached HEAD", do: func() { sh(t, repo.Root, "switch", "-q", "--detach", "l") }},
		{what: "a ref that leads to another", do: func() {
			sh(t, repo.Root, "symbolic-ref", "refs/heads/to", "refs/heads/l")
			sh(t, repo.Root, "symbolic-ref", "HEAD", "refs/heads/to")
		}, asked: true},
		{what: "a branch that is not there", do: func() { sh(t, repo.Root, "symbolic-ref", "HEAD", "refs/heads/none") }, asked: true},
	} {
		change.do()
		for _, dir := range []string{repo.Root, linked} {
			for range 2 {
				want, _ := try(dir, "rev-parse", "--verify", "--quiet", "HEAD")
				if got, _ := g.ResolveCommit(t.Context(), dir, "HEAD"); got != want {
					t.Errorf("%s, %s: %s, git says %s", change.what, dir, got, want)
				}
			}
			if _, err := g.ResolveCommit(none, dir, "HEAD"); (err != nil) != (change.asked && dir == repo.Root) {
				t.Errorf("%s, %s: %v without a git", change.what, dir, err)
			}
		}
	}
}
