package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"agency"
	"agency/internal/file"
	"agency/internal/killpoint"
	"agency/internal/plain"
)

// CheckoutHooks are the hooks that git may run while it makes a worktree.
var CheckoutHooks = []string{"post-checkout", "post-index-change", "reference-transaction"}

// AddWorktree creates a branch at commit and a worktree for it at path, which must not exist or be
// an empty folder. The branch tracks nothing, and the user's own checkout is not changed. A failure
// leaves nothing behind. A crash may leave the branch, a worktree that Worktree does not count, and
// git processes that continue, with AGENCY_MAKING=path in their environment. Git runs the programs
// that the caller chooses; repo.Hooks are the hooks among the repository's files. The errors are
// E_BRANCH_EXISTS, and E_WORKTREE_CREATE_FAILED with git's own message.
func (g *Worktrees) AddWorktree(ctx context.Context, repo agency.Repo, path, branch, commit string, programs agency.CheckoutPrograms) error {
	if _, err := os.Lstat(path); err == nil {
		if entries, err := os.ReadDir(path); err != nil || len(entries) > 0 {
			return unmade(path, fs.ErrExist)
		}
	}
	if programs == agency.NoPrograms {
		return g.addByGit(ctx, repo, path, branch, commit, programs)
	}
	laid, err := g.layOut(ctx, repo, path, commit)
	if err == nil && laid {
		err = g.addDirect(ctx, repo, path, branch)
	}
	if err == nil && !laid {
		return g.addByGit(ctx, repo, path, branch, commit, programs)
	}
	if err == nil {
		return nil
	}
	e := branchless(err, path, branch)
	if laid { // undo even when the caller's context has ended
		ctx = context.WithoutCancel(ctx)
		undo := g.RemoveWorktree(ctx, repo, path)
		if undo == nil {
			_, undo = g.UndoBranch(ctx, repo, path, branch, commit)
		}
		if undo != nil {
			e.Err = errors.Join(err, undo)
			return e.WithHint("a part of it is left: %s", undo)
		}
	}
	return e
}

// addByGit is AddWorktree when git has to make all of it.
func (g *Worktrees) addByGit(ctx context.Context, repo agency.Repo, path, branch, commit string, programs agency.CheckoutPrograms) error {
	if err := g.makeBranch(ctx, repo, path, branch, commit); err != nil {
		return err
	}
	c := call{
		dir: repo.Root, site: site{gitDir: repo.CommonDir}, hooks: programs != agency.NoPrograms, fetch: true, silent: true,
		env:      []string{"AGENCY_MAKING=" + path},
		settings: slices.Clone(checkoutSettings),
		args:     []string{"worktree", "add", "--quiet"},
	}
	switch {
	case programs == agency.NoPrograms:
		c.args = append(c.args, "--no-checkout", "--lock", "--reason", initializing) // until it has its files
	case repo.Hooks != "" && programs == agency.OwnPrograms:
		c.settings = append(c.settings, "core.hooksPath=/dev/null")
	case repo.Hooks != "":
		c.settings = append(c.settings, "core.hooksPath="+filepath.Join(path, repo.Hooks))
	}
	c.args = append(c.args, "--", path, branch)
	_, err := g.do(ctx, c)
	if err == nil && programs == agency.NoPrograms {
		err = g.writeFiles(ctx, repo, path)
	}
	if err == nil {
		return nil
	}
	e := unmade(path, err)
	if at, _ := g.Worktree(ctx, repo, path); at != "" { // git completed its part
		e.Message = fmt.Sprintf("create worktree %s: git's hook post-checkout fails: %s", path, words(err))
		e = e.WithHint("fix it; where it is: git -C %s rev-parse --git-path hooks/post-checkout", plain.ShellWord(repo.Root))
	}
	// Undo even when the caller's context has ended.
	ctx = context.WithoutCancel(ctx)
	undo := g.RemoveWorktree(ctx, repo, path)
	if undo == nil {
		undo = g.refs.DeleteBranch(ctx, repo, branch)
	}
	if undo != nil {
		e.Err = errors.Join(err, undo)
		return e.WithHint("a part of it is left: %s", undo)
	}
	return e
}

// writeFiles checks out the commit of a new worktree. Git runs no program for it: it uses only
// those settings of the repository that name none, and no settings of the user or the system.
func (g *Worktrees) writeFiles(ctx context.Context, repo agency.Repo, path string) error {
	dir, err := gitDir(repo, path)
	if err != nil {
		return err
	}
	list, err := g.readSettings(ctx, repo.CommonDir)
	if err != nil {
		return err
	}
	view, err := g.makeView(repo.CommonDir, format(neutral(list)))
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(view) }()
	_, err = g.do(ctx, call{
		dir: path, site: site{gitDir: dir, commonDir: view, worktree: path}, silent: true, settings: checkoutSettings,
		env:  []string{"AGENCY_MAKING=" + path, "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_SYSTEM=" + os.DevNull},
		args: []string{"reset", "--quiet", "--hard", "--no-recurse-submodules"},
	})
	if err == nil {
		err = os.Remove(filepath.Join(dir, "locked"))
	}
	return err
}

// checkoutSettings make git check out files with one worker for each core. That halves the time
// from 2,000 files on, but starting the workers costs more than it saves for a few hundred files.
var checkoutSettings = []string{"checkout.workers=0", "checkout.thresholdForParallelism=1000"}

// makeBranch creates the branch of a worktree at path. It is a step of its own: after it, a failed
// creation is agency's own and may be undone. The mark lets a later process find this git process,
// which continues if the present process dies.
func (g *Worktrees) makeBranch(ctx context.Context, repo agency.Repo, path, branch, commit string) error {
	if err := g.addBranch(ctx, repo, path, branch, commit, []string{"AGENCY_MAKING=" + path}); err != nil {
		return branchless(err, path, branch)
	}
	killpoint.At("worktree.branched")
	return nil
}

// branchless returns the error for a git process that failed to make a branch for a worktree.
func branchless(err error, path, branch string) *agency.Error {
	switch {
	case said(err, "already exists"):
		return agency.Errorf(agency.CodeBranchExists, "the branch %q exists already", branch).
			WithHint("give another name with --branch")
	case said(err, "exists; cannot create"):
		return unmade(path, err).WithHint("git keeps branches like files in folders; give another name with --branch")
	}
	return unmade(path, err)
}

// unmade returns E_WORKTREE_CREATE_FAILED with git's own message.
func unmade(path string, err error) *agency.Error {
	e := agency.Errorf(agency.CodeWorktreeFailed, "create worktree %s: %s", path, words(err))
	e.Err = err
	return e
}

// Worktree returns the present path of the worktree that was made at path, whose last part is
// unique: path itself, or where git moved it; "" if it does not exist. A worktree whose creation
// was interrupted does not count; RemoveWorktree removes it.
func (g *Worktrees) Worktree(ctx context.Context, repo agency.Repo, path string) (at string, err error) {
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
		return "", nil // git has an entry, but the folder is missing or is now a repository of its own
	default:
		return "", fmt.Errorf("look at worktree %s: %w", at, err)
	}
}

// Made reports whether a process other than git can have written into the folder of a worktree. No
// process can while the folder is empty or absent, or when the creation of the worktree was
// interrupted.
func (g *Worktrees) Made(ctx context.Context, repo agency.Repo, path string) (bool, error) {
	w, err := g.find(ctx, repo, path)
	if err != nil || w != nil {
		return w != nil && !w.unfinished(), err
	}
	entries, err := os.ReadDir(path)
	if missing(err) {
		return false, nil
	}
	return len(entries) > 0, err
}

// entryOf returns the folder with git's data about a worktree. Its name is the last part of the
// worktree's first path, which is unique.
func entryOf(repo agency.Repo, path string) string {
	return filepath.Join(repo.CommonDir, "worktrees", filepath.Base(path))
}

// finishWorktrees writes the file that git leaves empty when it is killed while it makes a
// worktree; with that empty file every other git command in the repository fails. It reports
// whether there was such a worktree, which stays unfinished. A worktree that git is still making is
// not harmed, because git writes the same content.
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

// linkedAt returns the path of the worktree whose data git keeps in dir, or "".
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

// Aside returns the path to which a worktree is moved before it is removed; processes that work in
// it move along.
func Aside(worktree string) string { return worktree + ".going" }

// missing reports whether an error proves that a file does not exist. Any other error proves
// nothing.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// Leftover reports whether anything is left of the worktree that was made at path: its files, there
// or moved aside, or git's data about it at path. A worktree that git moved elsewhere does not
// count. When the repository no longer exists, only the files count.
func (g *Worktrees) Leftover(repo agency.Repo, path string) (bool, error) {
	for _, place := range []string{path, Aside(path)} {
		if _, err := os.Lstat(place); !missing(err) {
			return err == nil, err
		}
	}
	at, err := linkedAt(entryOf(repo, path))
	return at != "" && (at == path || at == canonical(path)), err
}

// RemoveWorktree removes a worktree with all its files, and git's data about it. The worktree may
// already be gone, as a whole or in part. After a crash it is either whole at path or not at path
// at all, so a part of it never looks like the whole work; the next call removes the rest. When the
// repository no longer exists, it removes only the files. It does not check for changes: save them
// first. The error is E_CLEANUP_FAILED if the worktree is locked, if it is a repository of its own,
// or if a file cannot be removed.
func (g *Worktrees) RemoveWorktree(ctx context.Context, repo agency.Repo, path string) error {
	var w *worktree
	_, err := os.Lstat(repo.CommonDir)
	gone := missing(err) // with its data about worktrees
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
			WithHint("unlock it first: git -C %s worktree unlock -- %s", plain.ShellWord(repo.Root), plain.ShellWord(path))
	}
	// The files go first, because git refuses to remove a worktree with missing files.
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
	if gone {
		return nil
	}
	if w != nil {
		_, err = g.run(ctx, repo, "worktree", "remove", "--force", "--force", "--", path)
	} else {
		err = clearEntry(repo, path)
	}
	if err != nil {
		return uncleaned(err, "remove worktree %s", path)
	}
	// Git omits from its list what it cannot read at the moment.
	left, err := g.Leftover(repo, path)
	if err == nil && left {
		err = errors.New("a part of it is left")
	}
	if err != nil {
		return uncleaned(err, "remove worktree %s", path).WithHint("try again: agency rm")
	}
	return nil
}

// clearEntry removes the entry of a worktree whose creation was interrupted before git could list
// it. Git itself never removes a locked entry.
func clearEntry(repo agency.Repo, path string) error {
	dir := entryOf(repo, path)
	link, err := os.Lstat(filepath.Join(dir, "gitdir"))
	if !missing(err) && (err != nil || link.Size() > 0) {
		return err
	}
	return os.RemoveAll(dir)
}

// mendLink restores the link from git's data about a worktree to its repository. If an agent
// changed that link, git could fail in all worktrees of the repository.
func mendLink(repo agency.Repo, path string) error {
	const right = "../..\n"
	dir, err := gitDir(repo, path)
	if dir == repo.CommonDir || agency.IsCode(err, agency.CodeNotGitRepo) {
		return nil // git has no data about it
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

// Repair restores the links between a moved repository and its worktrees at paths.
func (g *Worktrees) Repair(ctx context.Context, repo agency.Repo, paths []string) error {
	if _, err := g.run(ctx, repo, append([]string{"worktree", "repair", "--"}, paths...)...); err != nil {
		return fmt.Errorf("repair the worktrees of %s: %w", repo.Root, err)
	}
	return nil
}

// uncleaned returns E_CLEANUP_FAILED with git's message, or the code that err already has.
func uncleaned(err error, format string, args ...any) *agency.Error {
	code := agency.CodeCleanupFailed
	if _, ok := errors.AsType[*failure](err); !ok && agency.AsError(err).Code != agency.CodeInternal {
		code = agency.AsError(err).Code
	}
	failed := agency.Errorf(code, "%s: %s", fmt.Sprintf(format, args...), words(err))
	failed.Err = err
	return failed
}

// removeAll is os.RemoveAll that also removes folders without write permission, as package managers
// make them.
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
	lost   bool // git cannot read its HEAD
	locked bool
	reason string
}

// initializing is the reason with which git locks a worktree until it is made.
const initializing = "initializing"

// unfinished reports whether the creation of the worktree was interrupted.
func (w *worktree) unfinished() bool { return w.locked && w.reason == initializing }

// find returns git's entry for the worktree at path, or nil.
func (g *Worktrees) find(ctx context.Context, repo agency.Repo, path string) (*worktree, error) {
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
			case "HEAD":
				w.lost = strings.Trim(value, "0") == ""
			case "branch":
				w.branch = strings.TrimPrefix(value, "refs/heads/")
				w.lost = false // its first commit is yet to come
			case "locked":
				w.locked, w.reason = true, value
			}
		}
		list = append(list, w)
	}
	return list
}
