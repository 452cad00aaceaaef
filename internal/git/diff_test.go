package git_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agency"
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

	d, err := g.Diff(t.Context(), repo, repo.Root, "", agency.DiffPart{From: base, Limit: 1 << 20})
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

	d, err = g.Diff(t.Context(), repo, repo.Root, "HEAD", agency.DiffPart{From: base, Limit: 1 << 20})
	check(t, err)
	if len(d.Files) != 1 || strings.Contains(d.Patch, "two") {
		t.Errorf("between commits: %+v", d)
	}
	d, err = g.Diff(t.Context(), repo, repo.Root, "", agency.DiffPart{From: base, Limit: 100})
	check(t, err)
	if !d.Truncated || len(d.Patch) > 100 || len(d.Patch) == 0 || !strings.HasSuffix(d.Patch, "\n") {
		t.Errorf("cut off: %+v", d)
	}
	if d, err = g.Diff(t.Context(), repo, repo.Root, "HEAD", agency.DiffPart{From: "HEAD", Limit: 100}); err != nil || len(d.Files) != 0 || d.Patch != "" {
		t.Errorf("no changes: %+v, %v", d, err)
	}
}

// A list has each file once, also one that moved, with its lines; then comes one file at a time.
func TestDiffByFile(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	write(t, filepath.Join(repo.Root, "old name.go"), strings.Repeat("a line of it\n", 20))
	write(t, filepath.Join(repo.Root, "gone"), "bye\n")
	write(t, filepath.Join(repo.Root, "*"), "star\n")
	numbers := []string{}
	for n := range 20 {
		numbers = append(numbers, strconv.Itoa(n))
	}
	write(t, filepath.Join(repo.Root, "long"), strings.Join(numbers, "\n")+"\n")
	sh(t, repo.Root, "add", ".")
	sh(t, repo.Root, "commit", "-m", "base")
	base := sh(t, repo.Root, "rev-parse", "HEAD")
	check(t, os.Rename(filepath.Join(repo.Root, "old name.go"), filepath.Join(repo.Root, "new name.go")))
	check(t, os.Remove(filepath.Join(repo.Root, "gone")))
	write(t, filepath.Join(repo.Root, "*"), "star\nmore\n")
	write(t, filepath.Join(repo.Root, "image"), "\x00\x01")
	numbers[9] = "nine"
	write(t, filepath.Join(repo.Root, "long"), strings.Join(numbers, "\n")+"\n")

	d, err := g.Diff(t.Context(), repo, repo.Root, "", agency.DiffPart{From: base, List: true})
	check(t, err)
	got := []string{}
	for _, f := range d.List {
		got = append(got, fmt.Sprintf("%s %s<%s +%d -%d %v %d", f.Status, f.Path, f.From, f.Added, f.Deleted, f.Binary, len(f.Object)))
	}
	want := []string{"M *< +1 -0 false 40", "D gone< +0 -1 false 40", "A image< +0 -0 true 40", "M long< +1 -1 false 40", "R new name.go<old name.go +0 -0 false 40"}
	if diff := cmp.Diff(want, got); diff != "" || d.Patch != "" || len(d.Tree) != 40 {
		t.Fatalf("%s %+v", diff, d)
	}
	star, err := g.Diff(t.Context(), repo, repo.Root, "", agency.DiffPart{From: base, File: "*", Limit: 1 << 20})
	check(t, err)
	if strings.Count(star.Patch, "diff --git") != 1 || !strings.Contains(star.Patch, "\n+more\n") || len(star.List) != 1 || star.Tree != d.Tree {
		t.Errorf("one file: %+v", star)
	}
	deep, err := g.Diff(t.Context(), repo, repo.Root, "", agency.DiffPart{From: base, File: "long", Limit: 1 << 20, Context: 5})
	check(t, err)
	if !strings.Contains(deep.Patch, "@@ -5,11 +5,11 @@") {
		t.Errorf("five lines around the change: %s", deep.Patch)
	}
	moved, err := g.Diff(t.Context(), repo, repo.Root, "", agency.DiffPart{From: base, File: "new name.go", Limit: 1 << 20})
	check(t, err)
	if !strings.Contains(moved.Patch, "rename from old name.go\nrename to new name.go\n") {
		t.Errorf("a file that moved: %s", moved.Patch)
	}
	if _, err := g.Diff(t.Context(), repo, repo.Root, "", agency.DiffPart{From: base, File: "README", Limit: 1}); !agency.IsCode(err, agency.CodeInvalidPath) {
		t.Errorf("an unchanged file: %v", err)
	}
}
