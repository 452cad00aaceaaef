package diff

import (
	"os"
	"path/filepath"
	"testing"
)

// Only a file of the worktree itself is opened: the agent makes links where it likes.
func TestRegular(t *testing.T) {
	t.Parallel()
	outside, worktree := t.TempDir(), t.TempDir()
	for _, path := range []string{filepath.Join(outside, "secret"), filepath.Join(worktree, "main.go")} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"link": filepath.Join(outside, "secret"), "folder": outside} {
		if err := os.Symlink(to, filepath.Join(worktree, link)); err != nil {
			t.Fatal(err)
		}
	}
	for path, opens := range map[string]bool{"main.go": true, "link": false, "folder/secret": false, "gone.go": false, "../x": false, ".": false} {
		if err := regular(worktree, path); (err == nil) != opens {
			t.Errorf("%s: %v", path, err)
		}
	}
	if regular(filepath.Join(worktree, "gone"), "main.go") == nil {
		t.Error("a worktree that is gone has a file")
	}
}
