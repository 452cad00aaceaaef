package file_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"agency/internal/file"
)

// Reading a link and removing an entry beneath a folder follow no link on the way.
func TestReadLinkAndRemoveBeneath(t *testing.T) {
	t.Parallel()
	root, external := t.TempDir(), t.TempDir()
	mustWrite(t, filepath.Join(external, "f"), "x")
	mustLink(t, external, filepath.Join(root, "out"))
	check(t, file.ReplaceLinkBeneath(root, "deep/active", "sessions/a"))
	if got, err := file.ReadLinkBeneath(root, "deep/active"); err != nil || got != "sessions/a" {
		t.Errorf("it leads to %q, %v", got, err)
	}
	if _, err := file.ReadLinkBeneath(root, "out/f"); !errors.Is(err, file.ErrNotRegular) {
		t.Errorf("a link was followed: %v", err)
	}
	if err := file.RemoveBeneath(root, "out/f"); !errors.Is(err, file.ErrNotRegular) {
		t.Errorf("a link was followed: %v", err)
	}
	check(t, os.MkdirAll(filepath.Join(root, "deep", "er"), 0o755))
	mustLink(t, external, filepath.Join(root, "deep", "er", "out"))
	check(t, errors.Join(file.RemoveBeneath(root, "out"), file.RemoveBeneath(root, "deep"), file.RemoveBeneath(root, "none/at/all")))
	wantNames(t, root)
	wantNames(t, external, "f")
}
