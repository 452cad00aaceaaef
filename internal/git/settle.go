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

// SettleMove finishes or takes back an interrupted move of a branch, together with the checkout in
// a worktree, and reports whether the branch has moved. worktree is empty when no worktree has the
// branch checked out. SettleMove finds out from git's data how far the move got, and waits for a
// git process of agency's that still works. When that process was killed, SettleMove removes its
// locks and puts back the files that it wrote since a time, if the checkout proves that they are
// its own. It also does so when the user has committed meanwhile, which keeps the branch from
// moving. E_TARGET_DIRTY: some files, those in the detail "files", are neither as before nor as
// after the move. After any error it is unknown whether the branch has moved.
func (g *Checkouts) SettleMove(ctx context.Context, repo agency.Repo, worktree, branch, from, to string, since time.Time) (moved bool, err error) {
	// Once the claim is held, no git process of agency's works on the branch.
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
		return false, err // everything that was moved is gone with it
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
	whole := false
	if now == from {
		if whole, err = c.indexMoved(ctx, files, since); err != nil {
			return false, err
		}
	}
	if whole {
		err := g.refs.move(ctx, repo, branch, from, to, "agency: finish a landing that was cut off")
		return err == nil, err
	}
	if err := c.unlockOrigHead(ctx, from, since); err != nil {
		return false, err
	}
	return false, c.takeBack(ctx, s, files, to, since)
}

// indexMoved reports whether the index has all files of a move, so that only the ref is missing. Then
// it has removed the locks that the killed git process left.
func (c *checkout) indexMoved(ctx context.Context, files []agency.ChangedFile, since time.Time) (bool, error) {
	whole := func() (bool, error) {
		index, err := c.staged(ctx)
		return !slices.ContainsFunc(files, func(f agency.ChangedFile) bool { return index[f.Path].file != f.To }), err
	}
	if moved, err := whole(); err != nil || !moved {
		return false, err
	}
	if err := removeHeadLocks(ctx, c.site.gitDir, since); err != nil {
		return false, err
	}
	return whole() // the user may have taken a file back meanwhile
}

// movedFiles returns the files that a move changes, without those in which the branch now differs
// from before the move: the user may have committed these while git moved the files.
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

// removeHeadLocks removes the locks of a git process that was killed when it moved the ref of a
// checkout.
func removeHeadLocks(ctx context.Context, gitDir string, since time.Time) error {
	for _, lock := range []string{"HEAD.lock", "ORIG_HEAD.lock"} {
		if err := removeLock(ctx, filepath.Join(gitDir, lock), since); err != nil {
			return err
		}
	}
	return nil
}

// unlockOrigHead removes the lock with which git begins to move a checkout, if git was killed at
// that point. The lock holds the old commit of the branch, and no living process holds it for long.
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

// unlockHead removes the lock of HEAD in a worktree, if the git process that moved the branch was
// killed before it did so itself. An empty worktree has none. A lock that may belong to another git
// process stays.
func unlockHead(ctx context.Context, repo agency.Repo, worktree string, since time.Time) {
	if worktree == "" {
		return
	}
	if dir, err := gitDir(repo, worktree); err == nil {
		_ = removeLock(ctx, filepath.Join(dir, "HEAD.lock"), since) // the branch has moved even if this fails
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
	still, err := g.history.Descends(ctx, repo, now, from) // a descendant of from also has the older commit
	return err == nil && !still, err
}

// isGone reports whether a worktree no longer exists.
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

// indexed is the entry of a file in the index.
type indexed struct {
	file   string // as a ChangedFile has it
	sparse bool   // the checkout leaves it out
}

// staged returns the entry of each file in the index.
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

// takeBack restores the files, and their entries in the index, after a git process was killed that
// moved them. The user may have restored some of them already.
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
	// Meanwhile the user works, perhaps with a git command that writes an index which it has read
	// before.
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

// apply restores files, and their entries in the index.
func (c *checkout) apply(ctx context.Context, found cutOff) error {
	// update-index locks the index before it reads it. Other commands that could do this lock it
	// only afterwards, and so does checkout-index when it keeps the index: then what the user
	// stages in between would be lost.
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

// cutOff is what a killed git process left of a move.
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
		found.begun = found.begun || state == fileMoved || state == fileMissing && !entry.sparse && entry.file == f.From
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
	fileMissing // by a git that removes it or was about to write it, by the user, or because the checkout leaves it out
	fileUnclear
)

// stateOf returns whether a file of the checkout is as before the move, as after it, or neither.
// Git can have written only files whose time is after the beginning of the move: an older file is
// the user's, even with the same content. Likewise, git can have removed only files whose folder
// changed since: a file that was missing before is the user's own deletion.
func (c *checkout) stateOf(ctx context.Context, s *saver, f agency.ChangedFile, to string, since time.Time) (fileState, error) {
	at := filepath.Join(c.path, f.Path)
	info, id, err := content(ctx, s, at, f.Path)
	switch {
	case missing(err) && (f.From == "" || !removedSince(at, since)):
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

// content returns what is at a path of a checkout, and git's name of its content; empty for
// anything but a file or a link.
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

// removedSince reports whether a missing file can have been removed since a time: then its folder, or
// the one above a folder that went with it, changed since.
func removedSince(path string, since time.Time) bool {
	dir := filepath.Dir(path)
	info, err := os.Lstat(dir)
	if missing(err) && dir != path {
		return removedSince(dir, since)
	}
	return err != nil || writtenSince(info, since)
}

// clockLag is how far the time that Linux gives a written file may be behind the clock: the kernel
// uses the time of its last tick.
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
