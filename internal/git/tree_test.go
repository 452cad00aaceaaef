package git_test

import (
	"os"
	"path/filepath"
	"testing"

	"agency"
)

// A tree that was kept can be compared with the worktree later, and the repository has nothing of it.
func TestKeepTree(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	objects := filepath.Join(tempDir(t), `a "b":c`)
	check(t, os.Mkdir(objects, 0o700))
	write(t, filepath.Join(repo.Root, "old.txt"), "written before\n")
	tree, err := g.KeepTree(t.Context(), repo, repo.Root, objects)
	check(t, err)
	write(t, filepath.Join(repo.Root, "new.txt"), "written after\n")
	part := agency.DiffPart{From: tree, Objects: objects, List: true, Limit: 1 << 20}
	diff, err := g.Diff(t.Context(), repo, repo.Root, "", part)
	if err != nil || len(diff.List) != 1 || diff.List[0].Path != "new.txt" {
		t.Errorf("got %+v, %v", diff.List, err)
	}
	check(t, os.Mkdir(objects+" empty", 0o700))
	part.Objects = objects + " empty"
	if _, err := g.Diff(t.Context(), repo, repo.Root, "", part); !agency.IsCode(err, agency.CodeInvalidState) {
		t.Errorf("without the objects: %v", err)
	}
	part.Objects = ""
	if _, err := g.Diff(t.Context(), repo, repo.Root, "", part); err == nil {
		t.Error("the repository has the tree")
	}
	part.Objects = objects
	if diff, err = g.Diff(t.Context(), repo, repo.Root, "HEAD", part); err != nil || len(diff.List) != 1 || diff.List[0].Status != "D" {
		t.Errorf("with a commit: %+v, %v", diff.List, err)
	}
}
