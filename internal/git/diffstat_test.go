package git_test

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"agency"
)

// The diffstat counts commits, and lines of all files that are not ignored, committed or not; it
// runs no program of the repository.
func TestDiffStat(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	ran := filepath.Join(tempDir(t), "ran")
	write(t, filepath.Join(repo.Root, ".gitattributes"), "* diff=evil\n")
	write(t, filepath.Join(repo.Root, ".gitignore"), "ignored\n")
	write(t, filepath.Join(repo.Root, "old\n\tname"), "one\ntwo\n")
	sh(t, repo.Root, "add", ".")
	sh(t, repo.Root, "commit", "-m", "attributes")
	base := sh(t, repo.Root, "rev-parse", "HEAD")
	sh(t, repo.Root, "config", "diff.external", "touch "+ran)
	sh(t, repo.Root, "config", "diff.evil.textconv", "touch "+ran)
	for _, x := range []struct {
		to   string
		want agency.DiffStat
	}{{"", agency.DiffStat{Nested: []string{}}}, {"HEAD", agency.DiffStat{}}} {
		if got, err := g.DiffStat(t.Context(), repo, repo.Root, base, x.to); err != nil || !reflect.DeepEqual(got, x.want) {
			t.Errorf("nothing changed: %+v, %v", got, err)
		}
	}
	write(t, filepath.Join(repo.Root, "old\n\tname"), "one\nthree\nfour\n")
	sh(t, repo.Root, "commit", "-a", "-m", "work")
	write(t, filepath.Join(repo.Root, "binary"), "a\x00b")
	write(t, filepath.Join(repo.Root, "new"), "five\n")
	write(t, filepath.Join(repo.Root, "ignored"), "six\n")
	newRepo(t, filepath.Join(repo.Root, "nested"))
	before := sh(t, repo.Root, "status", "--porcelain")

	got, err := g.DiffStat(t.Context(), repo, repo.Root, base, "")
	check(t, err)
	if want := (agency.DiffStat{Commits: 1, Files: 3, Added: 3, Deleted: 1, Nested: []string{"nested"}}); !reflect.DeepEqual(got, want) {
		t.Errorf("the worktree: got %+v, want %+v", got, want)
	}
	got, err = g.DiffStat(t.Context(), repo, repo.Root, base, "HEAD")
	check(t, err)
	if want := (agency.DiffStat{Commits: 1, Files: 1, Added: 2, Deleted: 1}); !reflect.DeepEqual(got, want) {
		t.Errorf("the branch: got %+v, want %+v", got, want)
	}
	if after := sh(t, repo.Root, "status", "--porcelain"); after != before {
		t.Errorf("the worktree changed: %q", after)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a program of the repository's ran")
	}
	if _, err := g.DiffStat(t.Context(), repo, repo.Root, "--output="+ran, ""); err == nil {
		t.Error("an option passed for a commit")
	}
}
