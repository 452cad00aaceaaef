package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agency"
	"agency/internal/file"
	"agency/internal/killpoint"
	"agency/internal/plain"
)

// Checkout returns the worktree that has a branch checked out; empty when none has. The error is
// E_TARGET_DIRTY when several worktrees have it, when the folder of the worktree cannot be seen,
// when git rebases or bisects the branch there, and when git's data about any worktree cannot be
// read.
func (g *Checkouts) Checkout(ctx context.Context, repo agency.Repo, branch string) (string, error) {
	out, err := g.run(ctx, repo, "worktree", "list", "--porcelain", "-z")
	if err != nil {
		return "", err
	}
	if err := allListed(repo); err != nil {
		return "", err
	}
	found := ""
	for _, w := range parseWorktrees(out) {
		if w.path == repo.CommonDir {
			continue // the entry of a bare repository
		}
		if w.lost && !w.unfinished() {
			return "", unseen(repo, w.path, errors.New("its HEAD cannot be read"))
		}
		dir, err := gitDir(repo, w.path)
		switch {
		case agency.IsCode(err, agency.CodeNotGitRepo) && w.branch != branch:
			continue
		case agency.IsCode(err, agency.CodeNotGitRepo):
			return "", targetBusy("%s has %q checked out, and is not there", w.path, branch).
				WithHint("if it is gone for good: git -C %s worktree prune", plain.ShellWord(repo.Root))
		case err != nil:
			return "", unseen(repo, w.path, err)
		}
		doing, err := underWay(dir, branch, w.branch == branch)
		if err != nil {
			return "", unseen(repo, w.path, err)
		}
		if doing != "" {
			return "", targetBusy("a %s of %q is under way in %s", doing, branch, w.path).
				WithHint("finish it first: git -C %s status", plain.ShellWord(w.path))
		}
		if w.branch != branch {
			continue
		}
		if _, err := os.Lstat(w.path); err != nil {
			return "", targetBusy("%s has %q checked out, and cannot be seen: %w", w.path, branch, err).
				WithHint("if it is gone for good: git -C %s worktree prune", plain.ShellWord(repo.Root))
		}
		if found != "" {
			return "", targetBusy("%s and %s have %q checked out", found, w.path, branch).WithHint("switch one of them to another branch")
		}
		found = w.path
	}
	return found, nil
}

// MoveBranch moves a branch that no worktree has checked out. E_TARGET_DIRTY: one has meanwhile.
// E_TARGET_MOVED: it does not point to from. In both cases nothing has changed. After another error,
// SettleMove returns whether it has moved.
func (g *Checkouts) MoveBranch(ctx context.Context, repo agency.Repo, branch, from, to, reason string) error {
	at, err := g.Checkout(ctx, repo, branch)
	if err != nil {
		return err
	}
	if at != "" {
		return targetBusy("%q was checked out meanwhile in %s", branch, at).WithHint("try again")
	}
	return g.refs.move(ctx, repo, branch, from, to, reason)
}

// refused reports whether an error proves that git did not begin to move a branch.
func refused(err error) bool {
	return agency.IsCode(err, agency.CodeTargetDirty) || agency.IsCode(err, agency.CodeTargetMoved)
}

func targetBusy(format string, args ...any) *agency.Error {
	return agency.Errorf(agency.CodeTargetDirty, format, args...)
}

// allListed refuses a repository with a worktree that git leaves out of its list because it cannot
// read where the worktree is.
func allListed(repo agency.Repo) error {
	known := filepath.Join(repo.CommonDir, "worktrees")
	entries, err := os.ReadDir(known)
	if missing(err) {
		return nil
	}
	if err != nil {
		return unseen(repo, known, err)
	}
	for _, entry := range entries {
		if _, err := linkedAt(filepath.Join(known, entry.Name())); err != nil {
			return unseen(repo, filepath.Join(known, entry.Name()), err)
		}
	}
	return nil
}

// unseen returns the error for git's data about a worktree that cannot be read: the branch can be
// checked out there, or be in the middle of a rebase.
func unseen(repo agency.Repo, worktree string, err error) error {
	return targetBusy("what git has of the worktree %s cannot be read: %w", printable(worktree), err).
		WithHint("try again; if it keeps failing, make it readable, or if it is gone for good: git -C %s worktree prune", plain.ShellWord(repo.Root))
}

// underWay returns the unfinished operation of git in a worktree that concerns a branch: any
// operation where the branch is checked out, and one that has put the branch aside. Data that
// cannot be read is an error.
func underWay(gitDir, branch string, checkedOut bool) (string, error) {
	for _, op := range []struct{ name, file string }{{"rebase", "rebase-merge/head-name"}, {"rebase", "rebase-apply/head-name"}, {"bisect", "BISECT_START"}} {
		data, err := file.ReadBeneath(gitDir, op.file, 64<<10)
		if err != nil && !missing(err) {
			return "", err
		}
		if name := strings.TrimSpace(string(data)); name == "refs/heads/"+branch || name == branch {
			return op.name, nil
		}
	}
	if !checkedOut {
		return "", nil
	}
	for _, op := range []struct{ name, file string }{
		{"merge", "MERGE_HEAD"},
		{"cherry-pick", "CHERRY_PICK_HEAD"},
		{"revert", "REVERT_HEAD"},
		{"rebase", "rebase-merge"},
		{"rebase", "rebase-apply"},
		{"cherry-pick", "sequencer"},
		{"bisect", "BISECT_LOG"},
	} {
		_, err := os.Lstat(filepath.Join(gitDir, op.file))
		if err == nil {
			return op.name, nil
		}
		if !missing(err) {
			return "", err
		}
	}
	return "", nil
}

// checkout is a worktree of the user that has a branch checked out, which is about to be moved.
type checkout struct {
	git    *Checkouts
	repo   agency.Repo
	path   string
	branch string
	site   site
	sparse []string // settings
}

func (g *Checkouts) checkout(ctx context.Context, repo agency.Repo, worktree, branch string) (*checkout, error) {
	at, err := g.through(ctx, repo, worktree)
	if err != nil {
		return nil, err
	}
	c := &checkout{git: g, repo: repo, path: worktree, branch: branch, site: at}
	// A view looks at all files; here, the files that the user excluded stay out.
	out, err := g.do(ctx, call{
		dir: worktree, site: site{gitDir: at.gitDir, commonDir: repo.CommonDir}, answers: []int{1},
		args: []string{"config", "--type=bool", "--get-regexp", `^core\.sparsecheckout(cone)?$`},
	})
	if err != nil {
		return nil, err
	}
	c.sparse = []string{"core.sparseCheckout=false"}
	for line := range strings.Lines(out) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		c.sparse = append(c.sparse, key+"="+value)
	}
	return c, nil
}

// run runs git in the checkout. No setting of the user makes it do more than was asked.
func (c *checkout) run(ctx context.Context, reason string, args ...string) (string, error) {
	return c.git.do(ctx, call{
		dir: c.path, site: c.site, args: args, silent: true, writes: refOf{c.repo.CommonDir, "refs/heads/" + c.branch},
		env: []string{"GIT_REFLOG_ACTION=" + reason},
		settings: append([]string{
			"submodule.recurse=false", "core.untrackedCache=keep", "gc.auto=0", "maintenance.auto=false", "core.fsync=all",
		}, c.sparse...),
	})
}

// awaitHead waits until no git process holds the lock of the checkout's HEAD, and refuses when that
// takes too long: a killed process may have left the lock. A move would meet it only after it has
// moved the files.
func (c *checkout) awaitHead(ctx context.Context) error {
	lock := filepath.Join(c.site.gitDir, "HEAD.lock")
	for tries := 1; ; tries++ {
		if _, err := os.Lstat(lock); err != nil {
			if missing(err) {
				err = nil
			}
			return err
		}
		if tries == lockTries {
			return targetBusy("the lock %s is in the way", printable(lock)).WithHint("if no git is at work there, remove it")
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(lockPause):
		}
	}
}

// check refuses a checkout that does not have the branch checked out at a commit.
func (c *checkout) check(ctx context.Context, at string) error {
	ask := func(args ...string) (string, error) {
		return c.git.do(ctx, call{dir: c.path, site: c.site, args: args})
	}
	branch, err := ask("symbolic-ref", "--quiet", "HEAD")
	if err != nil && !exited(err, 1) { // 1: it is on no branch
		return err
	}
	if strings.TrimSpace(branch) != "refs/heads/"+c.branch {
		return targetBusy("%s does not have %q checked out any more", c.path, c.branch).WithHint("try again")
	}
	head, err := commitOf(ask, "HEAD")
	if err == nil && head == "" {
		err = proveMissing(ask, c.repo.CommonDir, "HEAD")
	}
	if err == nil && head != at {
		err = movedMeanwhile(c.branch, at)
	}
	return err
}

// lockTries is how often agency waits for a lock of the checkout's index or HEAD, which the user's
// own git holds for a moment.
const (
	lockTries = 20
	lockPause = 100 * time.Millisecond
)

// FastForward moves a branch from a commit to a descendant of it, with the files of the worktree
// that has it checked out. It never overwrites files that differ from the commit, that git does not
// know or that it ignores: then the error is E_TARGET_DIRTY with them in the detail "files". It
// stashes nothing, and no hook runs. E_TARGET_DIRTY and E_TARGET_MOVED mean that nothing has
// changed; after another error, SettleMove returns whether the branch has moved.
func (g *Checkouts) FastForward(ctx context.Context, repo agency.Repo, worktree, branch, from, to, reason string) error {
	return g.moveCheckout(ctx, repo, worktree, branch, from, to, reason, nil,
		"merge", "--ff-only", "--no-overwrite-ignore", "--no-autostash", "--no-verify-signatures", "--no-stat", "--quiet", to)
}

// Back moves a branch back to an ancestor, with the files of the worktree that has it checked out.
// It refuses like FastForward, and also when something is staged there.
func (g *Checkouts) Back(ctx context.Context, repo agency.Repo, worktree, branch, from, to, reason string) error {
	return g.moveCheckout(ctx, repo, worktree, branch, from, to, reason, func(c *checkout) error {
		staged, err := g.do(ctx, call{dir: c.path, site: c.site, args: []string{"diff-index", "--cached", "--name-only", "-z", allSubmodules, "HEAD", "--"}})
		if err != nil {
			return err
		}
		if staged != "" {
			return overwritten(c, strings.Split(strings.TrimSuffix(staged, "\x00"), "\x00"), "are staged")
		}
		files, err := g.history.Changed(ctx, repo, from, to)
		if err != nil {
			return err
		}
		there, err := c.inTheWay(files)
		if err != nil {
			return err
		}
		if len(there) > 0 {
			return overwritten(c, there, "would be overwritten")
		}
		return nil
	}, "reset", "--keep", "--quiet", to)
}

// inTheWay returns the user's files at the paths of added files, or in folders of these paths: git
// would overwrite those that it ignores. It leaves out files that the move removes.
func (c *checkout) inTheWay(files []agency.ChangedFile) ([]string, error) {
	going := map[string]bool{}
	for _, f := range files {
		going[f.Path] = f.To == ""
	}
	there := []string{}
	for _, f := range files {
		if f.From != "" {
			continue
		}
		for at := f.Path; at != "."; at = filepath.Dir(at) {
			info, err := os.Lstat(filepath.Join(c.path, at))
			switch {
			case missing(err), err == nil && info.IsDir() && at != f.Path:
				continue
			case err != nil:
				return nil, err
			}
			err = filepath.WalkDir(filepath.Join(c.path, at), func(path string, e fs.DirEntry, err error) error {
				if err != nil || e.IsDir() {
					return err
				}
				rel, err := filepath.Rel(c.path, path)
				if !going[rel] && !slices.Contains(there, rel) {
					there = append(there, rel)
				}
				return err
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return there, nil
}

// moveCheckout moves a branch, and the checkout that has it, with a command of git. ready refuses
// what the command would do wrong; nil refuses nothing. The command moves whatever branch is checked
// out when it begins, so nothing slow comes between it and the last look at that.
func (g *Checkouts) moveCheckout(ctx context.Context, repo agency.Repo, worktree, branch, from, to, reason string, ready func(c *checkout) error, command ...string) error {
	c, err := g.checkout(ctx, repo, worktree, branch)
	if err != nil {
		return err
	}
	for tries := 1; ; tries++ {
		if hidden, err := c.hidden(ctx, from, to); err != nil {
			return err
		} else if len(hidden) > 0 {
			return overwritten(c, hidden, "would be overwritten")
		}
		if ready != nil {
			if err := ready(c); err != nil {
				return err
			}
		}
		if err := c.awaitHead(ctx); err != nil {
			return err
		}
		if err := c.check(ctx, from); err != nil {
			return err
		}
		killpoint.At("land.checked")
		if _, err = c.run(ctx, reason, command...); err == nil {
			break
		}
		if !said(err, "index.lock': File exists") || tries == lockTries {
			break
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(lockPause):
		}
	}
	if err == nil {
		return c.arrived(ctx, from, to, reason)
	}
	if f, ok := errors.AsType[*failure](err); !ok || agency.Exhausted(err) || f.full != "" {
		return err // not about the files of the checkout
	}
	if files := refusedFiles(err); len(files) > 0 {
		return overwritten(c, files, "would be overwritten")
	}
	if said(err, "Not possible to fast-forward") {
		return movedMeanwhile(branch, from)
	}
	return agency.Errorf(agency.CodeGitFailed, "git cannot move %q in %s: %s", branch, worktree, words(err)).WithHint("look there: git -C %s status", plain.ShellWord(worktree))
}

// arrived returns an error unless the branch has moved, as git reported. The user may have
// committed on top already, or switched to another branch in the last moment.
func (c *checkout) arrived(ctx context.Context, from, to, reason string) error {
	now, err := c.git.refs.CommitOf(ctx, c.repo, c.branch)
	if err != nil {
		return err
	}
	moved := false
	if now != from {
		if moved, err = c.git.hasMoved(ctx, c.repo, now, from, to); err != nil {
			return err
		}
	}
	if !moved {
		return cmp.Or(c.strayed(ctx, to, reason), movedMeanwhile(c.branch, from))
	}
	return nil
}

// strayed returns an error if git moved the checkout for a reason while it had another branch
// checked out, which it moved instead. The reflog tells.
func (c *checkout) strayed(ctx context.Context, to, reason string) error {
	ask := func(args ...string) (string, error) {
		return c.git.do(ctx, call{dir: c.path, site: c.site, args: args})
	}
	log, err := ask("log", "-g", "-2", "--no-show-signature", "--format=%H %gs", "HEAD", "--")
	if err != nil {
		return err
	}
	last, before, _ := strings.Cut(log, "\n")
	if !strings.HasPrefix(last, to+" "+reason+": ") {
		return nil
	}
	head, err := ask("rev-parse", "--abbrev-ref", "HEAD")
	if err != nil {
		return err
	}
	was, _, _ := strings.Cut(before, " ")
	return agency.Errorf(agency.CodeInvalidState, "%s switched from %q to %q at the last moment, and git moved the latter to %.12s", c.path, c.branch, strings.TrimSpace(head), to).
		WithHint("put it back: git -C %s reset --keep %.12s", plain.ShellWord(c.path), was)
}

func overwritten(c *checkout, files []string, what string) error {
	const most = 5
	named := make([]string, 0, most)
	for _, name := range files[:min(most, len(files))] {
		named = append(named, printable(name))
	}
	list := strings.Join(named, ", ")
	if more := len(files) - most; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return targetBusy("%q is checked out in %s, where files %s: %s", c.branch, c.path, what, list).WithDetail("files", files).
		WithHint("commit or move them first: git -C %s status", plain.ShellWord(c.path))
}

// refusedFiles returns the files because of which git did not begin to move a checkout.
func refusedFiles(err error) []string {
	f, ok := errors.AsType[*failure](err)
	if !ok {
		return nil
	}
	files, listing := []string{}, false
	for line := range strings.Lines(f.stderr) {
		switch {
		case strings.Contains(line, "would be overwritten by") || strings.Contains(line, "would be removed by") || strings.Contains(line, "would lose untracked files"):
			listing = true
		case listing && strings.HasPrefix(line, "\t"):
			files = append(files, strings.TrimSuffix(strings.TrimPrefix(line, "\t"), "\n"))
		default:
			listing = false
		}
		// reset names one file in the line itself: error: Entry 'PATH' not uptodate. Cannot merge.
		if _, rest, found := strings.Cut(line, "error: Entry '"); found {
			if path, _, ended := strings.Cut(rest, "' not uptodate"); ended {
				files = append(files, path)
			}
		}
	}
	return files
}

// removeLock removes a lock of a git process that is proven dead, if the lock was made since a time
// and does not change for a moment.
func removeLock(ctx context.Context, path string, since time.Time) error {
	was, err := os.Lstat(path)
	if missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !was.Mode().IsRegular() || !writtenSince(was, since) {
		return targetBusy("the lock %s is in the way, and is not agency's", printable(path)).WithHint("if no git is at work there, remove it")
	}
	select {
	case <-time.After(freeWait):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	now, err := os.Lstat(path)
	if missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !os.SameFile(was, now) || !now.ModTime().Equal(was.ModTime()) {
		return targetBusy("another git is at work: %s", printable(path)).WithHint("try again")
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
