package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"agency"
)

// Recall is Discover for questions that are asked often, such as whose runs a list shows. It asks
// git about a folder once, and again when a file has changed that decides in which repository the
// folder is: the .git of the folder or of one above it, the files that it leads to, and the
// configuration of the repository and of the user. A git process takes longer than the list.
func (g *Repos) Recall(ctx context.Context, dir string) (agency.Repo, error) {
	known, real, err := g.recalled(dir)
	if err != nil {
		return g.Discover(ctx, dir) // which returns what is wrong
	}
	if known != nil {
		if hooks, _, err := g.hooksSetting(ctx, known.repo); err == nil && hooks == known.hooks {
			repo := known.repo
			repo.Fingerprint, err = readID(repo.CommonDir)
			return repo, err
		}
	}
	asked := time.Now()
	repo, err := g.Discover(ctx, dir)
	if err != nil {
		return agency.Repo{}, err
	}
	g.remember(ctx, real, repo, asked)
	return repo, nil
}

// recalled returns what is known of the repository of a folder, and the folder's real path; known
// is nil when git has to be asked.
func (g *program) recalled(dir string) (known *found, real string, err error) {
	if real, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, "", err
	}
	g.mu.Lock()
	last, ok := g.found[real]
	g.mu.Unlock()
	if !ok {
		return nil, real, nil
	}
	if signs, _, ok := signsOf(last.files); !ok || signs != last.signs {
		return nil, real, nil
	}
	return &last, real, nil
}

// hooksSetting returns the value of core.hooksPath in a repository, and whether a linked worktree
// may have another value.
func (g *program) hooksSetting(ctx context.Context, repo agency.Repo) (value string, varies bool, err error) {
	list, err := g.effective(ctx, repo.CommonDir)
	for _, s := range list {
		if s.key == "core.hookspath" {
			value = s.value
		}
		varies = varies || strings.HasPrefix(s.key, "includeif.")
	}
	return value, varies, err
}

// found is git's answer about the repository of a folder, which is valid as long as the signs of
// the files are the same, and the setting of its hooks.
type found struct {
	repo   agency.Repo
	gitDir string // of the worktree
	hooks  string // the setting
	files  []string
	signs  string
}

// mostFound is for how many folders the repositories are kept.
const mostFound = 256

// signTick is the coarsest resolution of the times of files. A file that changed so shortly before
// git looked may have changed again since, without a new time.
const signTick = 20 * time.Millisecond

// remember keeps git's answer about a folder, which was asked for at a time, if it is certain which
// files decided it.
func (g *Repos) remember(ctx context.Context, dir string, repo agency.Repo, asked time.Time) {
	gitDir, files := deciding(dir, repo)
	signs, changed, ok := signsOf(files)
	if files == nil || !ok || !changed.Before(asked.Add(-signTick)) {
		return
	}
	hooks, varies, err := g.hooksSetting(ctx, repo)
	if err != nil || varies && gitDir != repo.CommonDir || (hooks == "" || filepath.IsAbs(hooks) || hooks[0] == '~') != (repo.Hooks == "") {
		return // it may be another one in this worktree, or changed meanwhile
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.found) >= mostFound {
		clear(g.found)
	}
	g.found[dir] = found{repo, gitDir, hooks, files, signs}
}

// deciding returns the files that decided in which repository git found a folder, including missing
// files that would have changed the answer, and the git directory of the worktree. It returns nil
// when it does not know them.
func deciding(dir string, repo agency.Repo) (gitDir string, files []string) {
	rel, err := filepath.Rel(repo.Toplevel, dir)
	if repo.Toplevel == "" || err != nil || !filepath.IsLocal(rel) {
		return "", nil
	}
	files = []string{}
	for ; dir != repo.Toplevel; dir = filepath.Dir(dir) {
		for _, name := range []string{".git", "HEAD"} { // of a repository, or of a bare one
			path := filepath.Join(dir, name)
			if _, err := os.Lstat(path); err == nil {
				return "", nil // git ignored it, and may not the next time
			}
			files = append(files, path)
		}
	}
	dotGit := filepath.Join(repo.Toplevel, ".git")
	gitDir = dotGit
	info, err := os.Lstat(dotGit)
	switch {
	case err != nil:
		return "", nil
	case info.Mode().IsRegular():
		text, err := os.ReadFile(dotGit)
		path, is := strings.CutPrefix(strings.TrimSuffix(string(text), "\n"), "gitdir: ")
		if err != nil || !is {
			return "", nil
		}
		if gitDir = path; !filepath.IsAbs(path) {
			gitDir = filepath.Join(repo.Toplevel, path)
		}
	case !info.IsDir():
		return "", nil
	}
	files = append(files, dotGit, gitDir, repo.CommonDir)
	for _, name := range []string{"HEAD", "commondir", "config.worktree"} {
		files = append(files, filepath.Join(gitDir, name))
	}
	for _, name := range []string{"HEAD", "config", "config.worktree", "objects", "refs"} {
		files = append(files, filepath.Join(repo.CommonDir, name))
	}
	return gitDir, files
}

// signsOf returns a text that differs when one of the files was made, removed, replaced or changed,
// and the time of the newest change. The content of a folder, and of a HEAD, does not count. ok is
// false when one of the files cannot be looked at.
func signsOf(paths []string) (signs string, changed time.Time, ok bool) {
	var b strings.Builder
	for _, path := range paths {
		var s unix.Stat_t
		switch err := unix.Lstat(path, &s); {
		case errors.Is(err, unix.ENOENT):
			b.WriteString("-\n")
			continue
		case err != nil:
			return "", time.Time{}, false
		}
		_, _ = fmt.Fprintf(&b, "%d %d", s.Mode, s.Uid)
		switch isDir := s.Mode&unix.S_IFMT == unix.S_IFDIR; {
		case isDir:
			_, _ = fmt.Fprintf(&b, " %d %d", s.Dev, s.Ino)
		case filepath.Base(path) != "HEAD":
			_, _ = fmt.Fprintf(&b, " %d %d %d %d %d", s.Dev, s.Ino, s.Size, s.Mtim.Nano(), s.Ctim.Nano())
			if at := time.Unix(0, s.Ctim.Nano()); at.After(changed) {
				changed = at
			}
		}
		b.WriteByte('\n')
	}
	return b.String(), changed, true
}
