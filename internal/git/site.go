package git

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"agency"
	"agency/internal/file"
	"agency/internal/plain"
)

// site is where a git process works. agency passes it instead of letting git discover it: a
// worktree belongs to an agent, which decides where its .git leads, and the configuration found
// there names programs. With the zero site git discovers the place; only queries that run no
// program use it.
type site struct {
	gitDir    string // of the worktree
	commonDir string // of the repository, or a view of it
	worktree  string // empty without one
}

// env names the site in the environment of a git process.
func (s site) env() []string {
	if s.gitDir == "" {
		return nil
	}
	env := []string{"GIT_DIR=" + s.gitDir}
	if s.commonDir != "" {
		env = append(env, "GIT_COMMON_DIR="+s.commonDir)
	}
	if s.worktree != "" {
		env = append(env, "GIT_WORK_TREE="+s.worktree)
	}
	return env
}

// within returns a call in a recorded repository. The call uses the repository's present
// configuration, so it must not be a command that runs programs of that configuration.
func within(repo agency.Repo, args ...string) call {
	return call{dir: repo.Root, site: site{gitDir: repo.CommonDir, commonDir: repo.CommonDir}, args: args}
}

// writing returns a call in a recorded repository that writes a ref. It is for commands that need the
// repository's present configuration; writeRef is for all others.
func writing(repo agency.Repo, ref string, args ...string) call {
	c := within(repo, args...)
	c.writes = refOf{repo.CommonDir, ref}
	return c
}

// writeRef runs git in a recorded repository, through a view of it, to write a ref. A setting of the
// repository's present configuration cannot run a hook. with changes the call; it may be nil.
func (g *program) writeRef(ctx context.Context, repo agency.Repo, ref string, with func(c *call), args ...string) error {
	c := writing(repo, ref, args...)
	var err error
	if c.site, err = g.viewed(ctx, repo); err != nil {
		return err
	}
	if with != nil {
		with(&c)
	}
	_, err = g.do(ctx, c)
	return err
}

// onDisk makes git write to the disk before it ends.
func onDisk(c *call) { c.settings = []string{"core.fsync=all"} }

// gitDir returns the folder in which the repository keeps its data about the worktree at path. It
// does not read the worktree itself. The error is E_NOT_GIT_REPO if the repository has no worktree
// at path.
func gitDir(repo agency.Repo, path string) (string, error) {
	whole := canonical(path)
	if info, err := os.Lstat(path); err == nil && !info.IsDir() {
		return "", notWorktree(repo, path)
	}
	if whole == repo.Root || path == repo.Root {
		return repo.CommonDir, nil
	}
	known := filepath.Join(repo.CommonDir, "worktrees")
	dir := filepath.Join(known, filepath.Base(path))
	found, failed := isWorktree(dir, whole)
	if found {
		return dir, nil
	}
	entries, err := os.ReadDir(known)
	if err != nil && !missing(err) {
		return "", fmt.Errorf("look for worktree %s: %w", path, err)
	}
	for _, entry := range entries {
		dir := filepath.Join(known, entry.Name())
		found, err := isWorktree(dir, whole)
		if found {
			return dir, nil
		}
		failed = cmp.Or(failed, err)
	}
	if failed != nil {
		return "", fmt.Errorf("look for worktree %s: %w", path, failed)
	}
	return "", notWorktree(repo, path)
}

// isWorktree reports whether dir holds git's data about the worktree at a canonical path.
func isWorktree(dir, path string) (bool, error) {
	info, err := os.Lstat(dir)
	switch {
	case missing(err):
		return false, nil
	case err != nil:
		return false, err
	case !info.IsDir():
		return false, nil
	}
	at, err := linkedAt(dir)
	return err == nil && at != "" && canonical(at) == path, err
}

func notWorktree(repo agency.Repo, path string) error {
	return agency.Errorf(agency.CodeNotGitRepo, "%s is not a worktree of the repository at %s", path, repo.Root).
		WithHint("repair it: git -C %s worktree repair -- %s", plain.ShellWord(repo.Root), plain.ShellWord(path))
}

// nested returns the site of a repository inside a worktree, without a view yet. ok is false if the
// repository cannot be read.
func nested(dir string) (s site, ok bool) {
	link := filepath.Join(dir, ".git")
	info, err := os.Lstat(link)
	switch {
	case err != nil:
		return site{}, false
	case info.IsDir():
		s.gitDir = link
	case info.Mode().IsRegular():
		data, err := file.ReadRegular(link, 64<<10)
		target, found := strings.CutPrefix(strings.TrimRight(string(data), "\r\n"), "gitdir: ")
		if err != nil || !found {
			return site{}, false
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(dir, target)
		}
		s.gitDir = target
	default:
		return site{}, false
	}
	s.commonDir, s.worktree = s.gitDir, dir
	if data, err := file.ReadRegular(filepath.Join(s.gitDir, "commondir"), 64<<10); err == nil {
		if s.commonDir = strings.TrimRight(string(data), "\r\n"); !filepath.IsAbs(s.commonDir) {
			s.commonDir = filepath.Join(s.gitDir, s.commonDir)
		}
	}
	return s, true
}

// discovered returns a call that lets git discover the repository of a folder. A bare repository
// inside another worktree came with the files, and its configuration is not the user's: the error
// is E_NOT_GIT_REPO.
func discovered(dir string, args ...string) (call, error) {
	c := call{dir: dir, args: args}
	bare := ""
	for at := canonical(dir); ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			if bare == "" {
				return c, nil
			}
			return c, agency.Errorf(agency.CodeNotGitRepo, "%s is a bare repository inside the worktree %s, and its configuration came with the files", bare, at).
				WithHint("if it is yours, move it out of %s", plain.ShellWord(at))
		}
		if bare == "" && looksBare(at) {
			if c.bare, bare = true, at; filepath.Base(at) == ".git" {
				return c, nil // it belongs to the worktree around it
			}
		}
		if at == filepath.Dir(at) {
			return c, nil
		}
	}
}

// looksBare reports whether git would treat a folder as a git directory.
func looksBare(dir string) bool {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}
