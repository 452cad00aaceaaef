package git

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"agency"
	"agency/internal/plain"
)

// AddDetached makes a worktree without a branch and without files at path, which must not exist or
// be an empty folder. No hook runs. A git that outlives this process has mark in its environment.
func (g *Worktrees) AddDetached(ctx context.Context, repo agency.Repo, path, commit, mark string) error {
	c := within(repo, "worktree", "add", "--quiet", "--detach", "--no-checkout", "--", path, commit)
	c.env = []string{mark}
	if _, err := g.do(ctx, c); err != nil {
		e := agency.Errorf(agency.CodeWorktreeFailed, "create worktree %s: %s", path, words(err))
		e.Err = err
		return e
	}
	return nil
}

// CheckOut gives a worktree without a branch, which no agent uses, the files of a commit. Every
// other file goes, except those that git ignores. It runs no hook and no program but the filters
// that were recorded, and proves that the files are those of the commit. A git that outlives this
// process has mark in its environment; the caller has ended those of earlier processes.
func (g *Worktrees) CheckOut(ctx context.Context, repo agency.Repo, worktree, commit, mark string) error {
	at, err := g.through(ctx, repo, worktree)
	if err != nil {
		return err
	}
	// No git process works here now, so these are the locks of a killed one.
	for _, lock := range []string{"index.lock", "HEAD.lock"} {
		if err := os.Remove(filepath.Join(at.gitDir, lock)); err != nil && !missing(err) {
			return fmt.Errorf("remove a lock of git: %w", err)
		}
	}
	if err := g.dropMarkedIndex(ctx, at); err != nil {
		return err
	}
	exact, err := g.fill(ctx, repo, at, commit, mark)
	switch {
	case err != nil:
		return fmt.Errorf("check out %.12s in %s: %w", commit, worktree, err)
	case !exact:
		return agency.Errorf(agency.CodeGitFailed, "the files in %s are not those of %.12s after their checkout", worktree, commit).
			WithHint("look: git -C %s status; or make it anew: git worktree remove --force %s", plain.ShellWord(worktree), plain.ShellWord(worktree))
	}
	return nil
}

// wholeCheckout makes git check out all files, and show those that the index marks as not checked
// out.
const wholeCheckout = "core.sparseCheckout=false"

// dropMarkedIndex removes the index of a worktree when it makes git overlook files: a program that
// ran there may have marked them as unchanged or as not checked out.
func (g *Worktrees) dropMarkedIndex(ctx context.Context, at site) error {
	out, err := g.do(ctx, call{dir: at.worktree, site: at, settings: []string{wholeCheckout}, args: []string{"ls-files", "-v", "-z"}})
	marked := err != nil // an index that cannot be read is removed too
	for entry := range strings.SplitSeq(out, "\x00") {
		marked = marked || entry != "" && !strings.HasPrefix(entry, "H ")
	}
	if !marked || ctx.Err() != nil {
		return ctx.Err()
	}
	if err := os.Remove(filepath.Join(at.gitDir, "index")); err != nil && !missing(err) {
		return fmt.Errorf("remove the index of %s: %w", at.worktree, err)
	}
	return nil
}

// fill makes the files of a worktree those of a commit, and reports whether they are.
func (g *Worktrees) fill(ctx context.Context, repo agency.Repo, at site, commit, mark string) (exact bool, err error) {
	run := func(args ...string) error {
		_, err := g.do(ctx, call{
			dir: at.worktree, site: at, env: []string{mark}, args: args,
			settings: []string{wholeCheckout, "advice.detachedHead=false", "checkout.workers=0", "checkout.thresholdForParallelism=1000"},
		})
		return err
	}
	if err := run("checkout", "--quiet", "--force", "--detach", "--no-recurse-submodules", commit); err != nil {
		return false, err
	}
	if err := run("clean", "--quiet", "-ffd"); err != nil {
		return false, err
	}
	l, err := g.trees.look(ctx, repo, at.worktree, "")
	if err != nil {
		return false, err
	}
	defer l.close()
	tree, err := g.history.Tree(ctx, repo, commit)
	return err == nil && l.last == commit && l.tree == tree, err
}
