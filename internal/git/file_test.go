package git_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"agency/internal/file"
)

func TestFile(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	root := repo.Root
	write(t, filepath.Join(root, "with space \"and\" ü"), "odd")
	write(t, filepath.Join(root, "dir", "crlf.txt"), "one\ntwo\n")
	write(t, filepath.Join(root, ".gitattributes"), "crlf.txt text eol=crlf\n")
	check(t, os.Symlink("a", filepath.Join(root, "link")))
	sh(t, root, "add", "-A")
	sh(t, root, "commit", "-qm", "files")
	commit := sh(t, root, "rev-parse", "HEAD")
	write(t, filepath.Join(root, "dir", "crlf.txt"), "not committed")
	for path, want := range map[string]string{"with space \"and\" ü": "odd", "dir/crlf.txt": "one\r\ntwo\r\n"} {
		if data, found, err := g.File(t.Context(), repo, commit, path, 100); err != nil || !found || string(data) != want {
			t.Errorf("%s: got %q, %v, %v", path, data, found, err)
		}
	}
	for _, path := range []string{"nothing", "dir", "dir/", "link/x", ":(glob)**", "*"} {
		if _, found, err := g.File(t.Context(), repo, commit, path, 100); err != nil || found {
			t.Errorf("%s: got %v, %v", path, found, err)
		}
	}
	if _, _, err := g.File(t.Context(), repo, commit, "link", 100); !errors.Is(err, file.ErrNotRegular) {
		t.Errorf("a link: got %v", err)
	}
	if _, _, err := g.File(t.Context(), repo, commit, "dir/crlf.txt", 5); !errors.Is(err, file.ErrTooLarge) {
		t.Errorf("a large one: got %v", err)
	}
}

func TestIgnored(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	write(t, filepath.Join(repo.Root, ".gitignore"), "*.log\n/modules/\n")
	write(t, filepath.Join(repo.Root, "new\nline.log"), "")
	check(t, os.Symlink("/tmp", filepath.Join(repo.Root, "modules"))) // the rule is for a folder, and this is a link
	got, err := g.Ignored(t.Context(), repo, repo.Root, []string{"a", "new\nline.log", "modules", "none"})
	if err != nil || !slices.Equal(got, []string{"new\nline.log"}) {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := g.Ignored(t.Context(), repo, repo.Root, []string{"a"}); err != nil || len(got) != 0 {
		t.Errorf("got %q, %v", got, err)
	}
}
