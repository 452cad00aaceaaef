package git

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"agency"
)

// DiffStat counts what differs between the commit from and the commit to. When to is empty, it
// compares with everything in the worktree that is not ignored, and counts the commits up to its
// HEAD. A file that moved counts as one removed and one added. A binary file has no lines, and
// neither has a file that is left out because there is too much to look at. The worktree, its index
// and the repository stay as they are, and no program runs but the filters of the user and of the
// recorded configuration.
func (g *Trees) DiffStat(ctx context.Context, repo agency.Repo, worktree, from, to string) (agency.DiffStat, error) {
	stat, err := g.diffStat(ctx, repo, worktree, from, to)
	if err != nil {
		return agency.DiffStat{}, fmt.Errorf("count the changes of %s since %.12s: %w", worktree, from, err)
	}
	return stat, nil
}

func (g *Trees) diffStat(ctx context.Context, repo agency.Repo, worktree, from, to string) (stat agency.DiffStat, err error) {
	l := look{git: g.program, repo: repo, last: to, tree: to}
	if to == "" {
		if l, err = g.look(ctx, repo, worktree, ""); err != nil {
			return stat, err
		}
		defer l.close()
		stat.Nested, stat.Files = l.nested, l.left.Files
	}
	out, err := l.run(ctx, 0, "rev-list", "--count", "--end-of-options", from+".."+cmp.Or(l.last, from), "--")
	if err != nil {
		return stat, err
	}
	if stat.Commits, err = strconv.Atoi(strings.TrimSpace(out)); err != nil {
		return stat, fmt.Errorf("read the number of commits: %w", err)
	}
	out, err = l.run(ctx, 0, "diff-tree", "-r", "-z", "--numstat", "--no-renames", "--no-ext-diff", "--no-textconv", "--submodule=short", allSubmodules,
		"--end-of-options", from, l.tree, "--")
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
		stat.Added += count(added)
		stat.Deleted += count(deleted)
	}
	return stat, nil
}

// look is a tree to compare with. The new objects of a worktree's tree are apart from those of the
// repository.
type look struct {
	git      *program
	repo     agency.Repo
	last     string // commit
	tree     string
	borrowed string // one more folder of objects to read; empty for none
	*saver
}

// look makes a tree of everything in a worktree that is not ignored. It leaves out the repositories
// in the worktree, and what is too much to look at. Its new objects go into the folder objects;
// when that is empty, they are removed when the caller closes the look.
func (g *Trees) look(ctx context.Context, repo agency.Repo, worktree, objects string) (look, error) {
	s, err := g.saver(ctx, repo, worktree)
	if err != nil {
		return look{}, err
	}
	s.apart = objects
	l := look{git: g.program, repo: repo, saver: s}
	if objects == "" {
		s.apart = filepath.Join(s.temp, "objects")
		err = os.Mkdir(s.apart, 0o700)
	}
	if err == nil {
		err = s.addAll(ctx)
	}
	if err == nil {
		l.last, err = s.head(ctx) // empty before the first commit
	}
	if err == nil {
		l.tree, err = s.line(ctx, "write-tree")
	}
	if err != nil {
		s.close()
	}
	return l, err
}

// run runs git on the tree. The answer is cut off after most bytes; 0 means no limit.
func (l *look) run(ctx context.Context, most int, args ...string) (string, error) {
	c := within(l.repo, args...)
	c.most = most
	switch {
	case l.saver != nil:
		l.saver.borrowed = l.borrowed
		c.env = l.objects()
	case l.borrowed != "":
		c.env = []string{alternateEnv(l.borrowed)}
	}
	c.env = append(c.env, "GIT_LITERAL_PATHSPECS=1")
	return l.git.do(ctx, c)
}
