package git_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agency"
	"agency/internal/git"
)

// landing makes a worktree without a branch that has the files of main.
func landing(t *testing.T, g *git.Git, repo agency.Repo) string {
	t.Helper()
	path := filepath.Join(tempDir(t), "landing")
	check(t, g.AddDetached(t.Context(), repo, path, "main", "M=1"))
	check(t, g.CheckOut(t.Context(), repo, path, commitOf(t, repo, "main"), "M=1"))
	return path
}

func commitOf(t *testing.T, repo agency.Repo, ref string) string {
	t.Helper()
	return strings.TrimSpace(sh(t, repo.Root, "rev-parse", ref))
}

// A checkout brings exactly the files of a commit, whatever was done to the worktree, and keeps
// what git ignores. No hook runs.
func TestCheckOut(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	write(t, filepath.Join(repo.Root, ".gitignore"), "cache/\n")
	write(t, filepath.Join(repo.Root, "deep", "b"), "one\n")
	sh(t, repo.Root, "add", "-A")
	sh(t, repo.Root, "commit", "-q", "-m", "second")
	second := commitOf(t, repo, "main")
	ran := filepath.Join(repo.Root, "ran")
	for _, name := range []string{"post-checkout", "post-index-change", "reference-transaction"} {
		hook(t, repo, name, "touch "+ran)
	}
	path := landing(t, g, repo)
	for name, spoil := range map[string]func(){
		"nothing":   func() {},
		"changed":   func() { write(t, filepath.Join(path, "a"), "spoiled\n") },
		"deleted":   func() { check(t, os.RemoveAll(filepath.Join(path, "deep"))) },
		"untracked": func() { write(t, filepath.Join(path, "new", "file"), "x\n") },
		"staged":    func() { write(t, filepath.Join(path, "staged"), "x\n"); sh(t, path, "add", "-A") },
		"nested":    func() { sh(t, path, "init", "-q", "inner"); write(t, filepath.Join(path, "inner", "x"), "x\n") },
		"committed": func() { write(t, filepath.Join(path, "a"), "x\n"); sh(t, path, "commit", "-q", "-a", "-m", "x") },
		"branch":    func() { sh(t, path, "switch", "-q", "-c", "sly"); sh(t, path, "branch", "-q", "-f", "other", "HEAD~1") },
		"locked":    func() { write(t, strings.TrimSpace(sh(t, path, "rev-parse", "--absolute-git-dir"))+"/index.lock", "") },
		"assumed": func() {
			sh(t, path, "update-index", "--assume-unchanged", "a")
			write(t, filepath.Join(path, "a"), "sly\n")
		},
		"skipped": func() {
			sh(t, path, "update-index", "--skip-worktree", "deep/b")
			write(t, filepath.Join(path, "deep", "b"), "sly\n")
		},
		"folder for a file": func() {
			check(t, os.Remove(filepath.Join(path, "a")))
			write(t, filepath.Join(path, "a", "x"), "x\n")
		},
	} {
		write(t, filepath.Join(path, "cache", "built"), "warm\n")
		spoil()
		_ = os.Remove(ran) // by the git of the test
		if err := g.CheckOut(t.Context(), repo, path, second, "M=1"); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := os.Stat(ran); err == nil {
			t.Errorf("%s: a hook ran", name)
		}
		if status := sh(t, path, "status", "--porcelain"); status != "" || commitOf(t, agency.Repo{Root: path}, "HEAD") != second {
			t.Errorf("%s: the worktree is at %s, %q", name, commitOf(t, agency.Repo{Root: path}, "HEAD"), status)
		}
		for file, want := range map[string]string{"a": "one\n", "deep/b": "one\n", "cache/built": "warm\n"} {
			if got, err := os.ReadFile(filepath.Join(path, file)); err != nil || string(got) != want {
				t.Errorf("%s: %s is %q, %v", name, file, got, err)
			}
		}
	}
	check(t, g.CheckOut(t.Context(), repo, path, commitOf(t, repo, "main~1"), "M=1"))
	if _, err := os.Stat(filepath.Join(path, "deep")); err == nil {
		t.Error("a file of another commit is left")
	}
}

// Touched finds the files that patterns guard, in whatever case, and both names of a moved one.
func TestTouched(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	write(t, filepath.Join(repo.Root, "ci", "test.sh"), "exit 1\n")
	write(t, filepath.Join(repo.Root, "x*y"), "x\n")
	sh(t, repo.Root, "add", "-A")
	sh(t, repo.Root, "commit", "-q", "-m", "base")
	base := commitOf(t, repo, "main")
	sh(t, repo.Root, "mv", "ci/test.sh", "elsewhere.sh")
	for _, path := range []string{"Makefile", "lib/a/b/rules.mk", "xzy", ":(top)odd"} {
		write(t, filepath.Join(repo.Root, path), "x\n")
	}
	sh(t, repo.Root, "add", "-A")
	sh(t, repo.Root, "commit", "-q", "-m", "work")
	for pattern, want := range map[string][]string{
		"ci/test.sh": {"ci/test.sh"}, "ci": {"ci/test.sh"}, "MAKEFILE": {"Makefile"}, "lib/**/*.mk": {"lib/a/b/rules.mk"}, "*.mk": nil,
		`x\*y`: nil, "x*y": {"xzy"}, ":(top)odd": {":(top)odd"}, "nothing": nil,
	} {
		got, err := g.Touched(t.Context(), repo, base, commitOf(t, repo, "main"), []string{pattern})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s touches %q, %v, want %q", pattern, got, err, want)
		}
	}
	if got, err := g.Touched(t.Context(), repo, base, commitOf(t, repo, "main"), nil); err != nil || got != nil {
		t.Errorf("no pattern touches %q, %v", got, err)
	}
}
