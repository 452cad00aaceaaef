package git

import (
	"context"
	"fmt"

	"agency"
)

// KeepTree writes everything in a worktree that is not ignored into a tree, without what Diff
// leaves out, and returns its name. Objects that the repository does not have go into the folder
// objects, which exists. A DiffPart that names the folder can be compared with the tree as long as
// the folder exists. KeepTree flushes nothing to the disk. The worktree, its index and the
// repository stay as they are.
func (g *Trees) KeepTree(ctx context.Context, repo agency.Repo, worktree, objects string) (tree string, err error) {
	l, err := g.look(ctx, repo, worktree, objects)
	if err != nil {
		return "", fmt.Errorf("keep the files of %s: %w", worktree, err)
	}
	defer l.close()
	return l.tree, nil
}
