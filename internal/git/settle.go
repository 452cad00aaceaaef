package git

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agency"
	"agency/internal/file"
)

// SettleMove finishes or takes back a move of a branch that was cut off, with the checkout in a
// worktree, and reports whether the branch has moved. worktree is empty when none has it checked
// out. It knows by what git has how far the move was, and waits for a git of agency's that is still
// at work. Of one that was killed it removes the locks, and puts back the files, that were written
// since a time, when the checkout proves that they are its own. So it does where the user committed
// meanwhile, which keeps the branch from moving. E_TARGET_DIRTY: some files are neither as before nor
// as after; they are in the detail "files". After any error it is not known whether the branch has
// moved.
func (g *Checkouts) SettleMove(ctx context.Context, repo agency.Repo, worktree, branch, from, to string, since time.Time) (moved bool, err error) {
	// With the claim, no git of agency's is at work on the branch.
	held, err := g.claim(ctx, refOf{repo.CommonDir, "refs/heads/" + branch})
	if err != nil {
		return false, err
	}
	held.done(true)
	now, err := g.refs.CommitOf(ctx, repo, branch)
	if err != nil {
		return false, err
	}
	if now == to {
		unlockHead(ctx, repo, worktree, since)
	}
	if now != from {
		if moved, err := g.hasMoved(ctx, repo, now, from, to); err != nil || moved {
			return moved, err
		}
	}
	if worktree == "" {
		return false, nil
	}
	if gone, err := isGone(repo, worktree); err != nil || gone {
		return false, err // with all that was moved in it
	}
	c, err := g.checkout(ctx, repo, worktree, branch)
	if err != nil {
		return false, err
	}
	switch err := c.check(ctx, now); {
	case refused(err):
		return false, nil // something else is checked out there now
	case err != nil:
		return false, err
	}
	files, err := g.movedFiles(ctx, repo, from, to, now)
	if err != nil {
		return false, err
	}
	s, err := g.trees.saver(ctx, repo, worktree)
	if err != nil {
		return false, err
	}
	defer s.close()
	whole := func() (bool, error) { // whether the index is moved; what is missing then is the ref
		index, err := c.staged(ctx)
		return now == from && !slices.ContainsFunc(files, func(f agency.ChangedFile) bool { return index[f.Path].file != f.To }), err
	}
	there, err := whole()
	if there && err == nil {
		if err := removeHeadLocks(ctx, c.site.gitDir, since); err != nil {
			return false, err
		}
		there, err = whole() // the user may have taken a file back meanwhile
	}
	if err != nil {
		return false, err
	}
	if there {
		err := g.refs.MoveBranch(ctx, repo, branch, from, to, "agency: finish a landing that was cut off")
		return err == nil, err
	}
	if err := c.unlockOrigHead(ctx, from, since); err != nil {
		return false, err
	}
	return false, c.takeBack(ctx, s, files, to, since)
}

// movedFiles returns the files that a move changes and that are, where the branch is now, as they
// were before: the user may have committed others while git moved the files.
func (g *Checkouts) movedFiles(ctx context.Context, repo agency.Repo, from, to, now string) ([]agency.ChangedFile, error) {
	files, err := g.history.Changed(ctx, repo, from, to)
	if err != nil || now == from {
		return files, err
	}
	theirs, err := g.history.Changed(ctx, repo, from, now)
	taken := map[string]bool{}
	for _, f := range theirs {
		taken[f.Path] = true
	}
	return slices.DeleteFunc(files, func(f agency.ChangedFile) bool { return taken[f.Path] }), err
}

// removeHeadLocks removes what a git left that was killed when it moved the ref of a checkout.
func removeHeadLocks(ctx context.Context, gitDir string, since time.Time) error {
	for _, lock := range []string{"HEAD.lock", "ORIG_HEAD.lock"} {
		if err := removeLock(ctx, filepath.Join(gitDir, lock), since); err != nil {
			return err
		}
	}
	return nil
}

// unlockOrigHead removes the lock with which a git begins to move a checkout, if it was killed right
// then: the lock says where the branch stood, and none that lives holds it for long.
func (c *checkout) unlockOrigHead(ctx context.Context, from string, since time.Time) error {
	lock := filepath.Join(c.site.gitDir, "ORIG_HEAD.lock")
	data, err := file.ReadRegular(lock, int64(len(from))+1)
	if err != nil || strings.TrimSpace(string(data)) != from {
		return nil //nolint:nilerr // it is not there, or not of this move
	}
	if info, err := os.Lstat(lock); err != nil || !writtenSince(info, since) {
		return nil //nolint:nilerr // likewise
	}
	return removeLock(ctx, lock, since)
}

// unlockHead removes the lock of HEAD in a worktree, empty for none, if the git that moved the branch
// was killed before it did so itself. What may be of another git stays.
func unlockHead(ctx context.Context, repo agency.Repo, worktree string, since time.Time) {
	if worktree == "" {
		return
	}
	if dir, err := gitDir(repo, worktree); err == nil {
		_ = removeLock(ctx, filepath.Join(dir, "HEAD.lock"), since) // the branch has moved all the same
	}
}

// hasMoved reports whether a branch that is no longer at a commit has moved to another one. Commits
// may have followed there.
func (g *Checkouts) hasMoved(ctx context.Context, repo agency.Repo, now, from, to string) (bool, error) {
	if now == to {
		return true, nil
	}
	forward, err := g.history.Descends(ctx, repo, to, from)
	switch {
	case err != nil:
		return false, err
	case forward:
		return g.history.Descends(ctx, repo, now, to)
	}
	still, err := g.history.Descends(ctx, repo, now, from) // what is on top of from has the older commit, too
	return err == nil && !still, err
}

// isGone reports whether a worktree exists no more.
func isGone(repo agency.Repo, worktree string) (bool, error) {
	if _, err := os.Lstat(worktree); err != nil {
		if missing(err) {
			err = nil
		}
		return err == nil, err
	}
	_, err := gitDir(repo, worktree)
	if agency.IsCode(err, agency.CodeNotGitRepo) {
		return true, nil
	}
	return false, err
}

// indexed is what the index has of a file.
type indexed struct {
	file   string // as a ChangedFile has it
	sparse bool   // the checkout leaves it out
}

// staged returns what the index has of each file.
func (c *checkout) staged(ctx context.Context) (map[string]indexed, error) {
	out, err := c.git.do(ctx, call{dir: c.path, site: c.site, args: []string{"ls-files", "--stage", "-t", "-z"}})
	index := map[string]indexed{}
	for line := range strings.SplitSeq(out, "\x00") {
		facts, path, _ := strings.Cut(line, "\t")
		if fields := strings.Fields(facts); len(fields) == 4 {
			index[path] = indexed{fields[1] + " " + fields[2], fields[0] == "S"}
		}
	}
	return index, err
}

// takeBack makes the files, and what the index has of them, as they were before a git moved them that
// was killed. The user may have taken some of them back.
func (c *checkout) takeBack(ctx context.Context, s *saver, files []agency.ChangedFile, to string, since time.Time) error {
	found, err := c.find(ctx, s, files, to, since)
	if err != nil || !found.begun {
		return err
	}
	for _, lock := range []string{"index.lock", "HEAD.lock"} {
		if err := removeLock(ctx, filepath.Join(c.site.gitDir, lock), since); err != nil {
			return err
		}
	}
	// Meanwhile the user works, perhaps with a git that writes an index which it has read before.
	for range 3 {
		if found, err = c.find(ctx, s, files, to, since); err != nil {
			return err
		}
		if len(found.unclear) > 0 {
			return overwritten(c, found.unclear, "are neither as before nor as after the landing that was cut off")
		}
		if len(found.restore)+len(found.remove)+len(found.unstage) == 0 {
			return nil
		}
		if err := c.apply(ctx, found); err != nil {
			return err
		}
	}
	return targetBusy("another git is at work in %s", c.path).WithHint("try again")
}

// apply makes files, and what the index has of them, as they were before.
func (c *checkout) apply(ctx context.Context, found cutOff) error {
	// Other commands that do this, and checkout-index when it keeps the index, lock it only after they
	// have read it: what the user stages at that moment would be gone.
	for _, step := range []struct {
		input []string
		args  []string
	}{
		{found.unstage, []string{"update-index", "-z", "--index-info"}},
		{found.sparse, []string{"update-index", "--skip-worktree", "-z", "--stdin"}},
		{found.restore, []string{"checkout-index", "--force", "-z", "--stdin"}},
	} {
		if len(step.input) == 0 {
			continue
		}
		if _, err := c.git.do(ctx, call{dir: c.path, site: c.site, args: step.args, input: lines0(step.input), settings: c.sparse}); err != nil {
			return err
		}
	}
	refresh := []string{"update-index", "-q", "--refresh"} // 1: other files differ
	if _, err := c.git.do(ctx, call{dir: c.path, site: c.site, args: refresh, settings: c.sparse, answers: []int{1}}); err != nil {
		return err
	}
	return c.removeFiles(found.remove)
}

// removeFiles removes files of the checkout, and the folders that are empty then.
func (c *checkout) removeFiles(paths []string) error {
	root, err := os.OpenRoot(c.path)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for _, path := range paths {
		if err := root.Remove(path); err != nil && !missing(err) {
			return err
		}
		for dir := filepath.Dir(path); dir != "."; dir = filepath.Dir(dir) {
			if root.Remove(dir) != nil {
				break // it has other files
			}
		}
	}
	return nil
}

// cutOff is what a git that was killed left of a move.
type cutOff struct {
	begun           bool
	restore, remove []string // files that are not as before
	unclear         []string // those that are neither as before nor as after
	unstage         []string // entries of the index as they were before, for update-index
	sparse          []string // files of these that the checkout leaves out
}

func (c *checkout) find(ctx context.Context, s *saver, files []agency.ChangedFile, to string, since time.Time) (cutOff, error) {
	found := cutOff{}
	index, err := c.staged(ctx)
	if err != nil {
		return found, err
	}
	for _, f := range files {
		state, err := c.stateOf(ctx, s, f, to, since)
		if err != nil {
			return found, err
		}
		entry := index[f.Path]
		found.begun = found.begun || state == fileMoved
		switch {
		case state == fileMoved && f.From == "":
			found.remove = append(found.remove, f.Path)
		case state == fileMoved, state == fileMissing && !entry.sparse:
			found.restore = append(found.restore, f.Path)
		case state == fileUnclear:
			found.unclear = append(found.unclear, f.Path)
		}
		if entry.file != f.To {
			continue
		}
		before := f.From
		if before == "" {
			_, id, _ := strings.Cut(f.To, " ")
			before = "0 " + strings.Repeat("0", len(id)) // removes the entry
		}
		found.unstage = append(found.unstage, before+"\t"+f.Path)
		if entry.sparse && f.From != "" {
			found.sparse = append(found.sparse, f.Path)
		}
	}
	return found, nil
}

type fileState int

const (
	fileBefore fileState = iota
	fileMoved
	fileMissing // by a git that was about to write it, by the user, or because the checkout leaves it out
	fileUnclear
)

// stateOf returns whether a file of the checkout is as it was, as it becomes, or neither. Git wrote
// a file only if it was written since the move began: an older one is the user's, also where it
// holds the same.
func (c *checkout) stateOf(ctx context.Context, s *saver, f agency.ChangedFile, to string, since time.Time) (fileState, error) {
	at := filepath.Join(c.path, f.Path)
	info, id, err := content(ctx, s, at, f.Path)
	switch {
	case missing(err) && f.From == "":
		return fileBefore, nil
	case missing(err):
		return fileMissing, nil
	case err != nil || id == "":
		return fileUnclear, err
	}
	written := writtenSince(info, since)
	switch {
	case strings.HasSuffix(f.To, " "+id) && written:
		return fileMoved, nil
	case strings.HasSuffix(f.From, " "+id):
		return fileBefore, nil
	case f.To == "" || !info.Mode().IsRegular() || !written:
		return fileUnclear, nil
	}
	// A git that is killed while it writes a file leaves the beginning of it.
	data, err := os.ReadFile(at)
	whole, catErr := s.run(ctx, "", "cat-file", "--filters", "--end-of-options", to+":"+f.Path)
	if err := errors.Join(err, catErr); err != nil {
		return fileUnclear, err
	}
	if bytes.HasPrefix([]byte(whole), data) {
		return fileMoved, nil
	}
	return fileUnclear, nil
}

// content returns what is at a path of a checkout, and git's name of what it holds; empty where that
// is neither a file nor a link.
func content(ctx context.Context, s *saver, at, path string) (info fs.FileInfo, id string, err error) {
	if info, err = os.Lstat(at); err != nil {
		return nil, "", err
	}
	switch mode := info.Mode(); {
	case mode.IsRegular():
		id, err = s.line(ctx, "hash-object", "--path="+path, "--", at)
	case mode&os.ModeSymlink != 0:
		var target string
		if target, err = os.Readlink(at); err == nil {
			id, err = s.run(ctx, target, "hash-object", "--stdin", "--no-filters")
			id = strings.TrimSpace(id)
		}
	}
	return info, id, err
}

// clockLag is how far the time that Linux gives a written file may be behind the clock: it is that of
// the last tick.
const clockLag = 10 * time.Millisecond

// writtenSince reports whether a file was last written at or after a time, by the clock of its file
// system. Some keep whole seconds.
func writtenSince(info fs.FileInfo, since time.Time) bool {
	at, since := info.ModTime(), since.Add(-clockLag)
	if at.Nanosecond() == 0 {
		since = since.Truncate(time.Second)
	}
	return !at.Before(since)
}
