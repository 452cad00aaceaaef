package git

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"agency"
)

// DiffStat counts what differs between the commit from and the commit to, or everything in the worktree at dir that is not
// ignored when to is empty; commits are then counted up to its HEAD. A file that moved is one less and one more, and a binary
// file has no lines. The worktree and its index stay as they are, and no program of the repository's choice runs.
func (g *Git) DiffStat(ctx context.Context, dir, from, to string) (agency.DiffStat, error) {
	stat, err := g.diffStat(ctx, dir, from, to)
	if err != nil {
		return agency.DiffStat{}, fmt.Errorf("count the changes of %s since %.12s: %w", dir, from, err)
	}
	return stat, nil
}

func (g *Git) diffStat(ctx context.Context, dir, from, to string) (stat agency.DiffStat, err error) {
	last := to
	if to == "" {
		last = "HEAD"
		if to, stat.Nested, err = g.worktreeTree(ctx, dir); err != nil {
			return stat, err
		}
	}
	out, err := g.run(ctx, dir, "rev-list", "--count", "--end-of-options", from+".."+last, "--")
	if err != nil {
		return stat, err
	}
	if stat.Commits, err = strconv.Atoi(strings.TrimSpace(out)); err != nil {
		return stat, fmt.Errorf("read the number of commits: %w", err)
	}
	out, err = g.run(ctx, dir, "diff-tree", "-r", "-z", "--numstat", "--no-renames", "--no-ext-diff", "--no-textconv", "--submodule=short",
		"--end-of-options", from, to, "--")
	if err != nil {
		return stat, err
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		added, rest, ok := strings.Cut(line, "\t")
		if !ok {
			continue
		}
		deleted, _, _ := strings.Cut(rest, "\t")
		stat.Files++
		stat.Added += lines(added)
		stat.Deleted += lines(deleted)
	}
	return stat, nil
}

// lines is a number of lines; a binary file has a dash instead.
func lines(number string) int {
	n, err := strconv.Atoi(number)
	if err != nil {
		return 0
	}
	return n
}

// worktreeTree is a tree of everything in a worktree that is not ignored, but for the repositories in it.
func (g *Git) worktreeTree(ctx context.Context, dir string) (tree string, nested []string, err error) {
	temp, err := g.tempDir()
	if err != nil {
		return "", nil, err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	s := saver{git: g, worktree: dir, index: filepath.Join(temp, "index")}
	if err := s.copyIndex(ctx); err != nil {
		return "", nil, err
	}
	if nested, err = s.addAll(ctx); err != nil {
		return "", nil, err
	}
	tree, err = s.line(ctx, "write-tree")
	return tree, nested, err
}
