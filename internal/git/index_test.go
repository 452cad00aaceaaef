package git_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agency/internal/git"
)

// What agency reads in an index is what git lists of it. It leaves the forms that it does not know
// to git.
func TestIndexAsGitListsIt(t *testing.T) {
	t.Parallel()
	_, repo := setup(t)
	root := repo.Root
	index := filepath.Join(root, ".git", "index")
	expect := func(form string, known bool) {
		t.Helper()
		listed, err := try(root, "ls-files", "-v", "--stage", "-z")
		check(t, err)
		read, asked, ok := git.SpecialFiles(index, listed)
		if ok != known || known && read != asked {
			t.Errorf("%s: read %q (%t), git lists %q", form, read, ok, asked)
		}
	}
	expect("files", true)
	for n := range 9 { // every length of the padding
		write(t, filepath.Join(root, "long", strings.Repeat("n", n+1)), "x")
	}
	write(t, filepath.Join(root, strings.Repeat("d", 200), strings.Repeat("e", 200), strings.Repeat("f", 200), strings.Repeat("g", 200)), "x")
	newRepo(t, filepath.Join(root, "inner"))
	sh(t, root, "add", "-A")
	expect("a repository", true)
	sh(t, root, "update-index", "--assume-unchanged", "a", "long/nn")
	expect("files that are assumed unchanged", true)
	sh(t, root, "update-index", "--skip-worktree", "long/n") // which needs version 3
	write(t, filepath.Join(root, "to come"), "x")
	sh(t, root, "add", "-N", "to come")
	expect("more marks", true)
	sh(t, root, "update-index", "--index-version=4")
	expect("version 4", false)
	sh(t, root, "update-index", "--index-version=2")
	sh(t, root, "update-index", "--split-index")
	expect("split", false)
	sh(t, root, "update-index", "--no-split-index")
	data, err := os.ReadFile(index)
	check(t, err)
	data[len(data)/2] ^= 1
	write(t, index, string(data))
	if _, _, ok := git.SpecialFiles(index, ""); ok {
		t.Error("a damaged index was read")
	}
}

// A conflict is one in the index that agency reads, too.
func TestIndexOfConflict(t *testing.T) {
	t.Parallel()
	_, repo := setup(t)
	root := repo.Root
	sh(t, root, "checkout", "-qb", "other")
	write(t, filepath.Join(root, "a"), "theirs")
	sh(t, root, "commit", "-qam", "theirs")
	sh(t, root, "checkout", "-q", "main")
	write(t, filepath.Join(root, "a"), "ours")
	sh(t, root, "commit", "-qam", "ours")
	if _, err := try(root, "merge", "-q", "other"); err == nil {
		t.Fatal("there is no conflict")
	}
	listed, err := try(root, "ls-files", "-v", "--stage", "-z")
	check(t, err)
	read, asked, ok := git.SpecialFiles(filepath.Join(root, ".git", "index"), listed)
	if !ok || read != asked || read[2] != "true" {
		t.Errorf("read %q (%t), git lists %q", read, ok, asked)
	}
}
