package git_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A diff contains committed, changed and new files, runs no program of the repository, and leaves
// the index unchanged.
func TestDiff(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	ran := filepath.Join(tempDir(t), "ran")
	write(t, filepath.Join(repo.Root, ".gitattributes"), "* diff=evil\n")
	write(t, filepath.Join(repo.Root, ".gitignore"), "ignored\n")
	sh(t, repo.Root, "add", ".")
	sh(t, repo.Root, "commit", "-m", "attributes")
	base := sh(t, repo.Root, "rev-parse", "HEAD")
	sh(t, repo.Root, "config", "diff.external", "touch "+ran)
	sh(t, repo.Root, "config", "diff.evil.textconv", "touch "+ran)
	write(t, filepath.Join(repo.Root, "committed"), "one\n")
	sh(t, repo.Root, "add", "committed")
	sh(t, repo.Root, "commit", "-m", "work")
	write(t, filepath.Join(repo.Root, "committed"), "one\ntwo\n")
	write(t, filepath.Join(repo.Root, "new"), "three\n")
	write(t, filepath.Join(repo.Root, "ignored"), "four\n")
	before := sh(t, repo.Root, "status", "--porcelain")

	d, err := g.Diff(t.Context(), repo, repo.Root, base, "", 1<<20)
	check(t, err)
	if len(d.Files) != 2 || d.Files[0].Path != "committed" || d.Files[1].Path != "new" || d.Truncated {
		t.Errorf("got %+v", d)
	}
	for _, line := range []string{"\n+one\n", "+two\n", "\n+three\n"} {
		if !strings.Contains(d.Patch, line) {
			t.Errorf("no %q in\n%s", line, d.Patch)
		}
	}
	if after := sh(t, repo.Root, "status", "--porcelain"); after != before {
		t.Errorf("the worktree changed: %q", after)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a program of the repository's ran")
	}

	d, err = g.Diff(t.Context(), repo, repo.Root, base, "HEAD", 1<<20)
	check(t, err)
	if len(d.Files) != 1 || strings.Contains(d.Patch, "two") {
		t.Errorf("between commits: %+v", d)
	}
	d, err = g.Diff(t.Context(), repo, repo.Root, base, "", 100)
	check(t, err)
	if !d.Truncated || len(d.Patch) > 100 || len(d.Patch) == 0 || !strings.HasSuffix(d.Patch, "\n") {
		t.Errorf("cut off: %+v", d)
	}
	if d, err = g.Diff(t.Context(), repo, repo.Root, "HEAD", "HEAD", 100); err != nil || len(d.Files) != 0 || d.Patch != "" {
		t.Errorf("no changes: %+v, %v", d, err)
	}
}
