package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"agency"
	"agency/internal/file"
	"agency/internal/killpoint"
)

// AddWorktree makes a branch at commit and a worktree of it at path, which must not exist. The branch tracks nothing, and
// the user's own checkout is not touched. When it fails it leaves nothing behind; a crash may leave the branch, a
// worktree that Worktree does not count, and git processes with AGENCY_MAKING=path in their environment that work on.
// E_BRANCH_EXISTS, or E_WORKTREE_CREATE_FAILED with git's own words.
func (g *Git) AddWorktree(ctx context.Context, repo agency.Repo, path, branch, commit string) error {
	fail := func(err error) *agency.Error {
		e := agency.Errorf(agency.CodeWorktreeFailed, "create worktree %s: %s", path, words(err))
		e.Err = err
		return e
	}
	if _, err := os.Lstat(path); err == nil {
		return fail(fs.ErrExist)
	}
	// The branch comes first and by itself: what fails from here on is known to be ours to take back.
	// The mark is for whoever comes after our death: git works on by itself.
	mark := []string{"AGENCY_MAKING=" + path}
	if _, err := g.do(ctx, call{dir: repo.Root, args: []string{"branch", "--no-track", "--", branch, commit}, env: mark}); err != nil {
		if said(err, "already exists") {
			return agency.Errorf(agency.CodeBranchExists, "the branch %q exists already", branch).
				WithHint("give another name with --branch")
		}
		return fail(err)
	}
	killpoint.At("worktree.branched")
	_, err := g.do(ctx, call{
		dir: repo.Root,
		env: mark,
		// As many workers as cores: half the time from 2,000 files on, but at a few hundred starting them costs more.
		settings: []string{"checkout.workers=0", "checkout.thresholdForParallelism=1000"},
		args:     []string{"worktree", "add", "--quiet", "--", path, branch},
	})
	if err == nil {
		return nil
	}
	e := fail(err)
	if at, _ := g.Worktree(ctx, repo, path); at != "" { // git did its part
		e.Message = fmt.Sprintf("create worktree %s: git's hook post-checkout fails: %s", path, words(err))
		e = e.WithHint("fix it; where it is: git -C %s rev-parse --git-path hooks/post-checkout", agency.ShellWord(repo.Root))
	}
	// Undo even when the caller has given up.
	ctx = context.WithoutCancel(ctx)
	undo := g.RemoveWorktree(ctx, repo, path)
	if undo == nil {
		undo = g.DeleteBranch(ctx, repo, branch)
	}
	if undo != nil {
		e.Err = errors.Join(err, undo)
		return e.WithHint("something of it is left: %s", undo)
	}
	return e
}

// Worktree is where the worktree is that was made at path, whose last part no other has: there, or where it was moved to with
// git; "" is nowhere. One whose making was cut short does not count; RemoveWorktree takes it away.
func (g *Git) Worktree(ctx context.Context, repo agency.Repo, path string) (at string, err error) {
	at = path
	w, err := g.find(ctx, repo, at)
	if err == nil && w == nil {
		// Git keeps what it knows of a worktree under the last part of its first path.
		at = linkedAt(filepath.Join(repo.CommonDir, "worktrees", filepath.Base(path)))
		w, err = g.find(ctx, repo, at)
	}
	if err != nil || w == nil || w.main || w.unfinished() {
		return "", err
	}
	if link, err := os.Lstat(filepath.Join(at, ".git")); err != nil || !link.Mode().IsRegular() {
		return "", nil //nolint:nilerr // git knows it, but it is not there, or is a repository of its own by now
	}
	return at, nil
}

// linkedAt is where the worktree is that git keeps its knowledge of in dir; "" is unknown.
func linkedAt(dir string) string {
	data, err := file.ReadRegular(filepath.Join(dir, "gitdir"), 64<<10)
	if err != nil {
		return ""
	}
	dotGit := strings.TrimSuffix(string(data), "\n")
	if !filepath.IsAbs(dotGit) { // worktree.useRelativePaths
		dotGit = filepath.Join(dir, dotGit)
	}
	return filepath.Dir(dotGit)
}

// RemoveWorktree removes a worktree with everything in it, and git's knowledge of it. It is fine if it is gone already, or
// half gone. After a crash it is either whole at path, or gone from there, so that nobody takes half of it for the work; the
// next call removes the rest. Of the zero repository, which is one that is gone, only the files are removed. Nothing is asked
// about changes: save them first. E_CLEANUP_FAILED: it is locked, it is not a worktree but a repository, or a file cannot be
// removed.
func (g *Git) RemoveWorktree(ctx context.Context, repo agency.Repo, path string) error {
	var w *worktree
	if _, err := os.Stat(repo.Root); err == nil { // else the repository is gone, and its knowledge with it
		if w, err = g.find(ctx, repo, path); err != nil {
			return uncleaned(err, "remove worktree %s", path)
		}
	}
	info, err := os.Lstat(filepath.Join(path, ".git"))
	switch {
	case w != nil && w.main, err == nil && info.IsDir():
		return uncleaned(errors.New("it is a repository, not a linked worktree"), "remove worktree %s", path).
			WithHint("move it to another place first, or remove it yourself")
	case w != nil && w.locked && !w.unfinished():
		return uncleaned(errors.New("it is locked"), "remove worktree %s", path).
			WithHint("unlock it first: git -C %s worktree unlock -- %s", agency.ShellWord(repo.Root), agency.ShellWord(path))
	}
	// Files first: git itself refuses to remove a worktree that is only half there.
	going := path + ".going"
	if err := removeAll(going); err != nil {
		return uncleaned(err, "remove worktree %s", path)
	}
	if err := os.Rename(path, going); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return uncleaned(err, "remove worktree %s", path)
	}
	killpoint.At("worktree.going")
	if err := removeAll(going); err != nil {
		return uncleaned(err, "remove worktree %s", path)
	}
	killpoint.At("worktree.files")
	if w == nil {
		return nil
	}
	if _, err := g.run(ctx, repo.Root, "worktree", "remove", "--force", "--force", "--", path); err != nil {
		return uncleaned(err, "remove worktree %s", path)
	}
	return nil
}

// Repair restores the links between a repository that was moved and its worktrees at paths.
func (g *Git) Repair(ctx context.Context, repo agency.Repo, paths []string) error {
	if _, err := g.run(ctx, repo.Root, append([]string{"worktree", "repair", "--"}, paths...)...); err != nil {
		return fmt.Errorf("repair the worktrees of %s: %w", repo.Root, err)
	}
	return nil
}

// uncleaned is E_CLEANUP_FAILED with git's words, or the code that err has already.
func uncleaned(err error, format string, args ...any) *agency.Error {
	code := agency.CodeCleanupFailed
	if e, ok := errors.AsType[*agency.Error](err); ok {
		code = e.Code
	}
	failed := agency.Errorf(code, "%s: %s", fmt.Sprintf(format, args...), words(err))
	failed.Err = err
	return failed
}

// removeAll is os.RemoveAll that also gets through folders without write permission, which package managers make.
func removeAll(path string) error {
	err := os.RemoveAll(path)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	root, opening := os.OpenRoot(path)
	if opening != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	_ = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = root.Chmod(name, 0o700)
		}
		return nil
	})
	return os.RemoveAll(path)
}

// worktree is one entry of git's list.
type worktree struct {
	path   string
	branch string // without refs/heads/; empty when detached or bare
	main   bool
	locked bool
	reason string
}

// unfinished says whether the making of the worktree was cut short: git locks it with this reason until it is done.
func (w *worktree) unfinished() bool { return w.locked && w.reason == "initializing" }

// find is git's entry for the worktree at path, or nil.
func (g *Git) find(ctx context.Context, repo agency.Repo, path string) (*worktree, error) {
	out, err := g.run(ctx, repo.Root, "worktree", "list", "--porcelain", "-z")
	if err != nil {
		return nil, err
	}
	whole := canonical(path) // as git writes it, unless a folder on the way became a link later
	for _, w := range parseWorktrees(out) {
		if w.path == whole || w.path == path {
			return &w, nil
		}
	}
	return nil, nil
}

// canonical is a path without links. It need not exist, but the folder that it is in may be reached through a link.
func canonical(path string) string {
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(dir, filepath.Base(path))
	}
	return path
}

// parseWorktrees reads the output of worktree list --porcelain -z. The first entry is the main worktree.
func parseWorktrees(out string) []worktree {
	var list []worktree
	for record := range strings.SplitSeq(out, "\x00\x00") {
		path, ok := strings.CutPrefix(record, "worktree ")
		if !ok {
			continue
		}
		path, rest, _ := strings.Cut(path, "\x00")
		w := worktree{path: path, main: len(list) == 0}
		for attribute := range strings.SplitSeq(rest, "\x00") {
			switch key, value, _ := strings.Cut(attribute, " "); key {
			case "branch":
				w.branch = strings.TrimPrefix(value, "refs/heads/")
			case "locked":
				w.locked, w.reason = true, value
			}
		}
		list = append(list, w)
	}
	return list
}
