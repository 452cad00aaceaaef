package git

import (
	"context"
	"fmt"
	"strings"

	"agency"
)

// Diff compares the commit from with the commit to or, when to is empty, with everything in the
// worktree that is not ignored, untracked files included. Changes that are too many or too large
// are left out before they are read, and named. The worktree, its index and the repository are not
// changed, and no program runs except filters of the user and of the recorded configuration. The
// patch ends after limit bytes.
func (g *Trees) Diff(ctx context.Context, repo agency.Repo, worktree, from, to string, limit int) (agency.Diff, error) {
	diff, err := g.diff(ctx, repo, worktree, from, to, limit)
	if err != nil {
		return agency.Diff{}, fmt.Errorf("compare %s with %.12s: %w", worktree, from, err)
	}
	return diff, nil
}

func (g *Trees) diff(ctx context.Context, repo agency.Repo, worktree, from, to string, limit int) (d agency.Diff, err error) {
	l := look{git: g.program, repo: repo, last: to, tree: to}
	d.LeftOut.Named = []agency.LeftFile{}
	if to == "" {
		if l, err = g.look(ctx, repo, worktree); err != nil {
			return d, err
		}
		defer l.close()
		l.left.Named = append(d.LeftOut.Named, l.left.Named...)
		d.LeftOut = l.left
	}
	out, err := l.run(ctx, 0, changesArgs(from, l.tree)...)
	if err != nil {
		return d, err
	}
	d.Files = parseChanges(out)
	patch, err := l.run(ctx, limit+1, "diff-tree", "-r", "-p", "--no-color", "--no-ext-diff", "--no-textconv", "--find-renames", "--submodule=short",
		"--end-of-options", from, l.tree, "--")
	if err != nil {
		return d, err
	}
	d.Patch = patch
	if len(patch) > limit {
		// The patch ends with a whole line: half of one could be misread.
		d.Patch, d.Truncated = patch[:strings.LastIndexByte(patch[:limit], '\n')+1], true
	}
	d.Truncated = d.Truncated || d.LeftOut.Files > 0
	return d, nil
}
