package git

import (
	"context"
	"fmt"
	"strings"

	"agency"
)

// Diff compares the commit from with the commit to, or with everything in the worktree at dir that is not ignored when to is
// empty; untracked files count, and the worktree and its index stay as they are. No program of the repository's choice runs.
// The patch is cut off after so many bytes.
func (g *Git) Diff(ctx context.Context, dir, from, to string, limit int) (agency.Diff, error) {
	diff, err := g.diff(ctx, dir, from, to, limit)
	if err != nil {
		return agency.Diff{}, fmt.Errorf("compare %s with %.12s: %w", dir, from, err)
	}
	return diff, nil
}

func (g *Git) diff(ctx context.Context, dir, from, to string, limit int) (agency.Diff, error) {
	if to == "" {
		var err error
		if to, _, err = g.worktreeTree(ctx, dir); err != nil {
			return agency.Diff{}, err
		}
	}
	changes, err := g.Changes(ctx, agency.Repo{Root: dir}, from, to)
	if err != nil {
		return agency.Diff{}, err
	}
	patch, err := g.do(ctx, call{
		dir: dir, most: limit + 1,
		args: []string{"diff-tree", "-r", "-p", "--no-color", "--no-ext-diff", "--no-textconv", "--find-renames", "--submodule=short", "--end-of-options", from, to, "--"},
	})
	if err != nil {
		return agency.Diff{}, err
	}
	d := agency.Diff{Files: changes, Patch: patch}
	if len(patch) > limit {
		// Whole lines: half of one says something else.
		d.Patch, d.Truncated = patch[:strings.LastIndexByte(patch[:limit], '\n')+1], true
	}
	return d, nil
}
