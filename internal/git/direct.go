package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"

	"agency"
	"agency/internal/killpoint"
)

// Git makes a branch and a worktree with four processes, and reads every worktree of the repository
// for it. Where a worktree needs nothing but the files of its commit, agency writes git's few files
// about the worktree itself, as git does. Then one git process makes the branch and checks out the
// files.

var plainName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]+$`) })

// layOut writes git's files about a worktree at path, at a detached commit, and locked like a
// worktree that git is making. It reports false, and has written nothing, when git itself has to
// make the worktree.
func (g *Worktrees) layOut(ctx context.Context, repo agency.Repo, path, commit string) (bool, error) {
	// For any other name git makes up one that its refs can have.
	if !sha().MatchString(commit) || !plainName().MatchString(filepath.Base(path)) {
		return false, nil
	}
	if direct, err := g.direct(ctx, repo); err != nil || !direct {
		return false, err
	}
	common, err := os.OpenRoot(repo.CommonDir)
	if err != nil {
		return false, err
	}
	defer func() { _ = common.Close() }()
	if err := common.Mkdir("worktrees", 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return false, err
	}
	entry := filepath.Join("worktrees", filepath.Base(path))
	if err := common.Mkdir(entry, 0o777); err != nil {
		if errors.Is(err, fs.ErrExist) { // another worktree has that name: git finds a free one
			return false, nil
		}
		return false, err
	}
	if err := os.MkdirAll(path, 0o777); err != nil { //nolint:gosec // as git makes it
		return false, errors.Join(err, common.Remove(entry))
	}
	dotGit := filepath.Join(canonical(path), ".git")
	// The first file keeps git from clearing the entry away, and the last one puts the entry on
	// git's list.
	for _, f := range [][2]string{
		{"locked", initializing}, {"commondir", "../.."}, {"HEAD", commit}, {"gitdir", dotGit},
	} {
		if err := writeNew(common, filepath.Join(entry, f[0]), f[1]); err != nil {
			return true, err
		}
	}
	worktree, err := os.OpenRoot(path)
	if err != nil {
		return true, err
	}
	defer func() { _ = worktree.Close() }()
	return true, writeNew(worktree, ".git", "gitdir: "+filepath.Join(repo.CommonDir, entry))
}

// writeNew writes a line into a file that must not exist.
func writeNew(dir *os.Root, name, line string) error {
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

// direct reports whether the commit alone decides the content of a new worktree, and the refs are
// ordinary files.
func (g *Worktrees) direct(ctx context.Context, repo agency.Repo) (bool, error) {
	list, _, plain, err := g.plainCheckout(ctx, repo)
	if err != nil || !plain {
		return false, err
	}
	return !slices.ContainsFunc(list, func(s setting) bool {
		switch s.key {
		case "extensions.refstorage":
			return s.value != "files"
		case "core.sharedrepository", "core.sparsecheckout", "extensions.worktreeconfig", "worktree.userelativepaths":
			return true
		}
		return false
	}), nil
}

// addDirect checks out a worktree that layOut prepared, on a new branch. A crash leaves what
// AddWorktree leaves.
func (g *Worktrees) addDirect(ctx context.Context, repo agency.Repo, path, branch string) error {
	killpoint.At("worktree.laid")
	if err := g.switchNew(ctx, repo, path, branch); err != nil {
		return err
	}
	killpoint.At("worktree.branched")
	if err := os.Remove(filepath.Join(entryOf(repo, path), "locked")); err != nil {
		return fmt.Errorf("unlock the worktree: %w", err)
	}
	return nil
}

// switchNew makes a branch at the commit of a worktree, whose HEAD is detached, and checks it out.
// No hook runs. The mark lets a later process find this git process, which continues if the present
// process dies.
func (g *Worktrees) switchNew(ctx context.Context, repo agency.Repo, path, branch string) error {
	c := writing(repo, "refs/heads/"+branch, "checkout", "--quiet", "--no-recurse-submodules", "--no-track", "-l", "-b", branch, "--force", startOf(path), "--")
	c.dir, c.site = path, site{gitDir: entryOf(repo, path), commonDir: repo.CommonDir, worktree: path}
	c.fetch, c.silent, c.settings, c.env = true, true, checkoutSettings, []string{"AGENCY_MAKING=" + path}
	_, err := g.do(ctx, c)
	return err
}
