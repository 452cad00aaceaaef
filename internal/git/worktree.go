package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"agency"
	"agency/internal/file"
	"agency/internal/killpoint"
)

// CheckoutHooks are the hooks that git may run while it makes a worktree.
var CheckoutHooks = []string{"post-checkout", "post-index-change", "reference-transaction"}

// AddWorktree makes a branch at commit and a worktree of it at path, which must not exist. The
// branch tracks nothing, and the user's own checkout is not touched. When it fails it leaves
// nothing behind; a crash may leave the branch, a worktree that Worktree does not count, and git
// processes with AGENCY_MAKING=path in their environment that work on. The user's and the
// repository's hooks run, but those that come with the files, repo.Hooks, only when they are
// trusted. E_BRANCH_EXISTS, or E_WORKTREE_CREATE_FAILED with git's own words.
func (g *Git) AddWorktree(ctx context.Context, repo agency.Repo, path, branch, commit string, trusted bool) error {
	fail := func(err error) *agency.Error {
		e := agency.Errorf(agency.CodeWorktreeFailed, "create worktree %s: %s", path, words(err))
		e.Err = err
		return e
	}
	if _, err := os.Lstat(path); err == nil {
		return fail(fs.ErrExist)
	}
	// The branch comes first and by itself: what fails from here on is known to be ours to take
	// back. The mark is for a later process, if this one dies: git continues by itself.
	mark := []string{"AGENCY_MAKING=" + path}
	branching := writing(repo, "refs/heads/"+branch, "branch", "--no-track", "--", branch, commit)
	branching.env = mark
	if _, err := g.do(ctx, branching); err != nil {
		if said(err, "already exists") {
			return agency.Errorf(agency.CodeBranchExists, "the branch %q exists already", branch).
				WithHint("give another name with --branch")
		}
		if said(err, "exists; cannot create") {
			return fail(err).WithHint("git keeps branches like files in folders; give another name with --branch")
		}
		return fail(err)
	}
	killpoint.At("worktree.branched")
	hooks := []string{}
	switch {
	case repo.Hooks != "" && trusted:
		hooks = []string{"core.hooksPath=" + filepath.Join(path, repo.Hooks)}
	case repo.Hooks != "":
		hooks = []string{"core.hooksPath=/dev/null"}
	}
	_, err := g.do(ctx, call{
		dir: repo.Root, site: site{gitDir: repo.CommonDir}, hooks: true, fetch: true, silent: true,
		env: mark,
		// As many workers as cores: half the time from 2,000 files on, but at a few hundred
		// starting them costs more.
		settings: append(hooks, "checkout.workers=0", "checkout.thresholdForParallelism=1000"),
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
	// Undo even when the caller's context has ended.
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

// Worktree returns the place of the worktree that was made at path, whose last part is unique:
// there, or where git moved it; "" if it is nowhere. One whose making was cut short does not count;
// RemoveWorktree takes it away.
func (g *Git) Worktree(ctx context.Context, repo agency.Repo, path string) (at string, err error) {
	at = path
	w, err := g.find(ctx, repo, at)
	if err == nil && w == nil {
		if at, err = linkedAt(entryOf(repo, path)); err == nil {
			w, err = g.find(ctx, repo, at)
		}
	}
	if err != nil || w == nil || w.main || w.unfinished() {
		return "", err
	}
	switch link, err := os.Lstat(filepath.Join(at, ".git")); {
	case err == nil && link.Mode().IsRegular():
		return at, nil
	case err == nil, missing(err):
		return "", nil // git knows it, but it is not there, or is a repository of its own by now
	default:
		return "", fmt.Errorf("look at worktree %s: %w", at, err)
	}
}

// entryOf is where git keeps what it knows of a worktree: under the last part of its first path,
// which no other has.
func entryOf(repo agency.Repo, path string) string {
	return filepath.Join(repo.CommonDir, "worktrees", filepath.Base(path))
}

// finishWorktrees writes what a git that was killed while it made a worktree had not come to: a
// file that is empty, with which every other git fails in the repository. It reports whether there
// was such a worktree, which stays unfinished. One that is still being made is none the worse for
// it: its git writes the same.
func finishWorktrees(commonDir string) bool {
	finished := false
	entries, _ := os.ReadDir(filepath.Join(commonDir, "worktrees"))
	for _, entry := range entries {
		dir := filepath.Join(commonDir, "worktrees", entry.Name())
		reason, err := file.ReadRegular(filepath.Join(dir, "locked"), 1<<10)
		if err != nil || strings.TrimSpace(string(reason)) != initializing {
			continue
		}
		common := filepath.Join(dir, "commondir")
		if info, err := os.Lstat(common); err == nil && info.Size() == 0 {
			finished = file.WriteAtomic(common, []byte("../..\n")) == nil || finished
		}
	}
	return finished
}

// linkedAt is where the worktree is that git keeps its knowledge of in dir; "" is nowhere.
func linkedAt(dir string) (string, error) {
	data, err := file.ReadRegular(filepath.Join(dir, "gitdir"), 64<<10)
	if missing(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read where a worktree is: %w", err)
	}
	dotGit := strings.TrimSuffix(string(data), "\n")
	if !filepath.IsAbs(dotGit) { // worktree.useRelativePaths
		dotGit = filepath.Join(dir, dotGit)
	}
	return filepath.Dir(dotGit), nil
}

// Aside is where a worktree is moved to before it is removed; what works in it goes along.
func Aside(worktree string) string { return worktree + ".going" }

// missing reports whether an error proves that a file is not there. Any other one proves nothing.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// Leftover reports whether anything is left of the worktree that was made at path: its files, whole
// or moved aside, or git's knowledge of it there. One that git has moved elsewhere is not left. The
// files are those of a repository that is gone, too.
func (g *Git) Leftover(repo agency.Repo, path string) (bool, error) {
	for _, place := range []string{path, Aside(path)} {
		if _, err := os.Lstat(place); !missing(err) {
			return err == nil, err
		}
	}
	at, err := linkedAt(entryOf(repo, path))
	return at != "" && (at == path || at == canonical(path)), err
}

// RemoveWorktree removes a worktree with everything in it, and git's knowledge of it. It may be
// gone already, or half gone. After a crash it is either whole at path, or gone from there, so that
// half of it is never taken for the work; the next call removes the rest. Of the zero repository,
// which is one that is gone, only the files are removed. Nothing is asked about changes: save them
// first. E_CLEANUP_FAILED: it is locked, it is not a worktree but a repository, or a file cannot be
// removed.
func (g *Git) RemoveWorktree(ctx context.Context, repo agency.Repo, path string) error {
	var w *worktree
	_, err := os.Lstat(repo.CommonDir)
	gone := missing(err) // and what it knew
	if !gone {
		if err := mendLink(repo, path); err != nil {
			return uncleaned(err, "remove worktree %s", path)
		}
		if w, err = g.find(ctx, repo, path); err != nil {
			return uncleaned(err, "remove worktree %s", path)
		}
	}
	info, err := os.Lstat(filepath.Join(path, ".git"))
	switch {
	case err != nil && !missing(err):
		return uncleaned(err, "remove worktree %s", path)
	case w != nil && w.main, err == nil && info.IsDir():
		return uncleaned(errors.New("it is a repository, not a linked worktree"), "remove worktree %s", path).
			WithHint("move it to another place first, or remove it yourself")
	case w != nil && w.locked && !w.unfinished():
		return uncleaned(errors.New("it is locked"), "remove worktree %s", path).
			WithHint("unlock it first: git -C %s worktree unlock -- %s", agency.ShellWord(repo.Root), agency.ShellWord(path))
	}
	// Files first: git itself refuses to remove a worktree that is only half there.
	going := Aside(path)
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
	if w != nil {
		if _, err := g.run(ctx, repo, "worktree", "remove", "--force", "--force", "--", path); err != nil {
			return uncleaned(err, "remove worktree %s", path)
		}
	}
	if gone {
		return nil
	}
	// Git leaves out of its list what it cannot read just now.
	left, err := g.Leftover(repo, path)
	if err == nil && left {
		err = errors.New("something of it is left")
	}
	if err != nil {
		return uncleaned(err, "remove worktree %s", path).WithHint("try again: agency rm")
	}
	return nil
}

// mendLink makes what git keeps of a worktree lead to its repository. Where an agent turned it
// elsewhere, git could fail in all of them.
func mendLink(repo agency.Repo, path string) error {
	const right = "../..\n"
	dir, err := gitDir(repo, path)
	if dir == repo.CommonDir || agency.IsCode(err, agency.CodeNotGitRepo) {
		return nil // git knows of none there
	}
	if err != nil {
		return err
	}
	link, err := file.ReadRegular(filepath.Join(dir, "commondir"), 64<<10)
	if err == nil && string(link) == right {
		return nil
	}
	return file.WriteBeneath(dir, "commondir", []byte(right), 0o644)
}

// Repair restores the links between a repository that was moved and its worktrees at paths.
func (g *Git) Repair(ctx context.Context, repo agency.Repo, paths []string) error {
	if _, err := g.run(ctx, repo, append([]string{"worktree", "repair", "--"}, paths...)...); err != nil {
		return fmt.Errorf("repair the worktrees of %s: %w", repo.Root, err)
	}
	return nil
}

// uncleaned is E_CLEANUP_FAILED with git's words, or the code that err has already.
func uncleaned(err error, format string, args ...any) *agency.Error {
	code := agency.CodeCleanupFailed
	if _, ok := errors.AsType[*failure](err); !ok && agency.AsError(err).Code != agency.CodeInternal {
		code = agency.AsError(err).Code
	}
	failed := agency.Errorf(code, "%s: %s", fmt.Sprintf(format, args...), words(err))
	failed.Err = err
	return failed
}

// removeAll is os.RemoveAll that also gets through folders without write permission, which package
// managers make.
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

// initializing is the reason with which git locks a worktree until it is made.
const initializing = "initializing"

// unfinished reports whether the making of the worktree was cut short.
func (w *worktree) unfinished() bool { return w.locked && w.reason == initializing }

// find returns git's entry for the worktree at path, or nil.
func (g *Git) find(ctx context.Context, repo agency.Repo, path string) (*worktree, error) {
	out, err := g.run(ctx, repo, "worktree", "list", "--porcelain", "-z")
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

// canonical returns a path without links. It need not exist, but the folder that it is in may be
// reached through a link.
func canonical(path string) string {
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(dir, filepath.Base(path))
	}
	return path
}

// parseWorktrees reads the output of worktree list --porcelain -z. The first entry is the main
// worktree.
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
