package git_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// A bare repository that a commit brought along as a folder is none that git works in: its
// configuration is the author's.
func TestCommittedBareRepository(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	bare := filepath.Join(repo.Root, "vendor")
	sh(t, repo.Root, "clone", "-q", "--bare", repo.Root, bare)
	sh(t, bare, "config", "core.pager", "evil")
	out, err := g.Runs(t.Context(), bare, "git config core.pager || git rev-parse --git-dir")
	if err == nil || strings.Contains(out, "evil") || !strings.Contains(err.Error(), "safe.bareRepository") {
		t.Errorf("git worked in the folder: %q, %v", out, err)
	}
}
