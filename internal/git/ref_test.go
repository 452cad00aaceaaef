package git_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agency"
)

func TestResolveCommit(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	first, second := sh(t, repo.Root, "rev-parse", "HEAD~1"), sh(t, repo.Root, "rev-parse", "HEAD")
	sh(t, repo.Root, "tag", "-m", "annotated", "v1", first)
	sh(t, repo.Root, "branch", "topic/🚦", first)
	for ref, want := range map[string]string{
		"": second, "HEAD": second, "main": second, "refs/heads/main": second, "@": second,
		"HEAD~1": first, "v1": first, "topic/🚦": first, first: first, first[:8]: first, "HEAD^{/first}": first, ":/first": first,
	} {
		if got, err := g.ResolveCommit(t.Context(), repo.Root, ref); err != nil || got != want {
			t.Errorf("%q is %s, %v, want %s", ref, got, err, want)
		}
	}
	for _, ref := range []string{
		"nope", "HEAD~9", "-x", "--all", "--upload-pack=touch x", "-", "^HEAD", "HEAD..HEAD~1", "HEAD:a", "a b", "\x1b[31m",
		"nul\x00", "HEAD\n", strings.Repeat("0", 40), strings.Repeat("x", 5000), "@{-1}",
	} {
		_, err := g.ResolveCommit(t.Context(), repo.Root, ref)
		wantCode(t, err, agency.CodeBadRef)
	}
	_, err := g.ResolveCommit(t.Context(), tempDir(t), "HEAD")
	wantCode(t, err, agency.CodeNotGitRepo)
}

// The error for a mistyped branch names the existing ones.
func TestResolveCommitNamesOthers(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	for _, branch := range []string{"agency/1122-a-b1c2", "feature/login", "feature/logout"} {
		sh(t, repo.Root, "branch", branch)
	}
	for ref, hint := range map[string]string{
		"mian": "did you mean main? all there are: git branch --all", "feature/logni": "did you mean feature/login?",
		"log": "did you mean feature/login, feature/logout?", "nonsense": "there are feature/login, feature/logout, main; all of them: git branch --all",
	} {
		_, err := g.ResolveCommit(t.Context(), repo.Root, ref)
		if e := agency.AsError(err); e == nil || !strings.Contains(e.Hint, hint) {
			t.Errorf("%q: got %+v, want %q", ref, e, hint)
		}
	}
}

func TestResolveCommitEmptyAndShallow(t *testing.T) {
	t.Parallel()
	g, dir := newGit(), tempDir(t)
	sh(t, dir, "init", "-q", "-b", "main", "empty")
	empty := filepath.Join(dir, "empty")
	for ref, want := range map[string]agency.Code{"": agency.CodeEmptyRepo, "HEAD": agency.CodeEmptyRepo, "main": agency.CodeBadRef} {
		_, err := g.ResolveCommit(t.Context(), empty, ref)
		wantCode(t, err, want)
	}
	newRepo(t, filepath.Join(dir, "full"))
	sh(t, filepath.Join(dir, "full"), "checkout", "-q", "--orphan", "unborn")
	_, err := g.ResolveCommit(t.Context(), filepath.Join(dir, "full"), "")
	wantCode(t, err, agency.CodeBadRef) // the repository has commits, but not in this worktree

	sh(t, dir, "clone", "-q", "--depth=1", "-b", "main", "file://"+filepath.Join(dir, "full"), "shallow")
	if _, err := g.ResolveCommit(t.Context(), filepath.Join(dir, "shallow"), "HEAD"); err != nil {
		t.Error(err)
	}
	_, err = g.ResolveCommit(t.Context(), filepath.Join(dir, "shallow"), "HEAD~1")
	wantCode(t, err, agency.CodeBadRef)
}

func TestCheckBranch(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	sh(t, repo.Root, "branch", "x/y/z")
	sh(t, repo.Root, "branch", "packed/q")
	sh(t, repo.Root, "pack-refs", "--all")
	sh(t, repo.Root, "checkout", "-q", "-b", "now")
	for branch, want := range map[string]agency.Code{
		"new": "", "agency/1122-x": "", "x/y/w": "", "x/yy": "", "mai": "", "main2": "", "🚦/é": "", "quo'te\"$(x)": "",
		"main": agency.CodeBranchExists, "now": agency.CodeBranchExists, "x/y/z": agency.CodeBranchExists,
		"x": agency.CodeBranchExists, "x/y": agency.CodeBranchExists, "packed": agency.CodeBranchExists,
		"main/sub": agency.CodeBranchExists, "x/y/z/a/b": agency.CodeBranchExists,
		"": agency.CodeBadRef, "-x": agency.CodeBadRef, "--all": agency.CodeBadRef, "a b": agency.CodeBadRef, "a..b": agency.CodeBadRef,
		"a.lock": agency.CodeBadRef, "HEAD": agency.CodeBadRef, "@": agency.CodeBadRef, "@{-1}": agency.CodeBadRef, "/a": agency.CodeBadRef,
		"a/": agency.CodeBadRef, "a//b": agency.CodeBadRef, "a\x1b[31m": agency.CodeBadRef, "a\x00": agency.CodeBadRef, "a*": agency.CodeBadRef,
		"a/" + strings.Repeat("b", 250) + "/c": "", "a/" + strings.Repeat("b", 251): agency.CodeBadRef,
	} {
		err := g.CheckBranch(t.Context(), repo, branch)
		if want == "" && err != nil || want != "" && !agency.IsCode(err, want) {
			t.Errorf("%q: error is %v, want %q", branch, err, want)
		}
	}
	err := g.CheckBranch(t.Context(), repo, "main/sub")
	wantCode(t, err, agency.CodeBranchExists)
	e := agency.AsError(err)
	if !strings.Contains(e.Message, `"main" exists`) {
		t.Errorf("the message does not name the branch in the way: %s", e.Message)
	}
}

func TestDeleteBranch(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	sh(t, repo.Root, "checkout", "-q", "-b", "unmerged")
	sh(t, repo.Root, "commit", "-q", "--allow-empty", "-m", "x")
	wantCode(t, g.DeleteBranch(t.Context(), repo, "unmerged"), agency.CodeCleanupFailed) // checked out
	sh(t, repo.Root, "checkout", "-q", "main")
	for range 2 {
		check(t, g.DeleteBranch(t.Context(), repo, "unmerged"))
	}
	if got := sh(t, repo.Root, "branch", "--format=%(refname:short)"); got != "main" {
		t.Errorf("branches are %q", got)
	}
}

func TestBranchThatCannotBeRead(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	if there, err := g.HasBranch(t.Context(), repo, "agency/x"); there || err != nil {
		t.Errorf("no branch: %v, %v", there, err)
	}
	sh(t, repo.Root, "branch", "agency/x/y")
	if there, err := g.HasBranch(t.Context(), repo, "agency/x"); there || err != nil {
		t.Errorf("a folder of branches: %v, %v", there, err)
	}
	if err := os.WriteFile(filepath.Join(repo.CommonDir, "refs/heads/agency/x/y"), []byte("no commit\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := g.HasBranch(t.Context(), repo, "agency/x/y"); err == nil {
		t.Error("HasBranch of a branch that cannot be read gives no error")
	}
	if _, err := g.Unmerged(t.Context(), repo, "agency/x/y", "HEAD"); err == nil {
		t.Error("Unmerged of a branch that cannot be read gives no error")
	}
	if err := g.DeleteBranch(t.Context(), repo, "agency/x/y"); err == nil {
		t.Error("DeleteBranch of a branch that cannot be read gives no error")
	}
}

// Git says of a commit that it cannot read what it says of one that is not there.
func TestCommitThatCannotBeRead(t *testing.T) {
	t.Parallel()
	nothing := strings.Repeat("1", 40)
	for damage, refs := range map[string][]string{
		"echo no commit > refs/heads/main":       {"HEAD", "refs/heads/main", "gone"},
		"echo " + nothing + " > refs/heads/main": {"HEAD", "refs/heads/main", "gone"},
		"echo " + nothing + " > HEAD":            {"HEAD", "gone"},
		"echo '[' > config":                      {"HEAD", "refs/heads/main", "gone"},
		"echo no commit > refs/heads/other":      {"refs/heads/other"},
	} {
		g, repo := setup(t)
		cmd := exec.CommandContext(t.Context(), "sh", "-c", damage)
		cmd.Dir = repo.CommonDir
		check(t, cmd.Run())
		for _, ref := range refs {
			id, err := g.ResolveCommit(t.Context(), repo.Root, ref)
			if err == nil || agency.IsCode(err, agency.CodeBadRef) || agency.IsCode(err, agency.CodeEmptyRepo) {
				t.Errorf("%s: %s is %q, %v", damage, ref, id, err)
			}
		}
		if refs[0] != "HEAD" {
			continue
		}
		if facts, err := g.Inspect(t.Context(), repo, repo.Root, ""); err == nil {
			t.Errorf("%s: got %+v", damage, facts)
		}
		if saved, err := g.Snapshot(t.Context(), repo, repo.Root, "", "refs/agency/snapshots/r/1", "x"); err == nil {
			t.Errorf("%s: saved %+v", damage, saved)
		}
	}
}

func TestUnmerged(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	base := sh(t, repo.Root, "rev-parse", "HEAD")
	expect := func(want bool, when string) {
		t.Helper()
		if got, err := g.Unmerged(t.Context(), repo, "agency/x", base); err != nil || got != want {
			t.Errorf("%s: unmerged is %v, %v, want %v", when, got, err, want)
		}
	}
	expect(false, "no branch")
	sh(t, repo.Root, "branch", "agency/x")
	expect(false, "no commits")
	sh(t, repo.Root, "checkout", "-q", "agency/x")
	sh(t, repo.Root, "commit", "-q", "--allow-empty", "-m", "work")
	expect(true, "own commits")
	sh(t, repo.Root, "update-ref", "refs/agency/snapshots/x/1", "HEAD")
	expect(true, "in a snapshot only")
	if got, err := g.Unmerged(t.Context(), repo, "agency/x", base, "refs/agency/snapshots/x/1"); err != nil || got {
		t.Errorf("in a known snapshot: unmerged is %v, %v", got, err)
	}
	sh(t, repo.Root, "branch", "agency/x2")
	expect(false, "in another branch")
	sh(t, repo.Root, "branch", "-D", "agency/x2")
	sh(t, repo.Root, "update-ref", "refs/remotes/origin/agency/x", "HEAD")
	expect(false, "pushed")
}

// A branch is contained in its base when it has no commit of its own, and nothing has it checked
// out.
func TestContained(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	first, second := sh(t, repo.Root, "rev-parse", "HEAD~1"), sh(t, repo.Root, "rev-parse", "HEAD")
	sh(t, repo.Root, "branch", "new", second)
	sh(t, repo.Root, "branch", "merged", second)
	sh(t, repo.Root, "switch", "-q", "-c", "own", first)
	sh(t, repo.Root, "commit", "-q", "--allow-empty", "-m", "own")
	sh(t, repo.Root, "branch", "own-too")
	own := sh(t, repo.Root, "rev-parse", "HEAD")
	for _, c := range []struct{ branch, from, base, want string }{
		{"new", second, "", second},
		{"new", second, "main", second},
		{"merged", first, "main", second},
		{"merged", first, "HEAD", ""},
		{"own", second, "main", ""},
		{"own-too", first, "main", ""},
		{"own-too", first, "own-too", ""},
		{"own-too", first, "HEAD", own},
		{"merged", first, "no-such", ""},
		{"gone", first, "main", ""},
	} {
		if got, err := g.Contained(t.Context(), repo, c.branch, c.from, c.base); got != c.want || err != nil {
			t.Errorf("%s from %.7s in %q: got %q, %v, want %q", c.branch, c.from, c.base, got, err, c.want)
		}
	}
	sh(t, repo.Root, "branch", "next", own) // of a run that began at the work of another one
	sh(t, repo.Root, "branch", "-D", "own-too")
	sh(t, repo.Root, "switch", "-q", "main")
	sh(t, repo.Root, "branch", "-D", "own")
	if got, err := g.Contained(t.Context(), repo, "next", own, "own"); got != "" || err != nil {
		t.Errorf("a branch that alone has the commits that it began at: got %q, %v", got, err)
	}
	sh(t, repo.Root, "branch", "own-too", own)
	sh(t, repo.Root, "switch", "-q", "--detach", own)
	if got, err := g.Contained(t.Context(), repo, "own-too", first, "HEAD"); got != "" || err != nil {
		t.Errorf("a branch that only a detached HEAD has: got %q, %v", got, err)
	}
}
