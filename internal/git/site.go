package git

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"agency"
	"agency/internal/file"
)

// site is where a git process works. It is told rather than left to git to discover: a worktree
// belongs to an agent, who decides what its .git leads to, and the configuration found there names
// programs. The zero site lets git discover, which only questions do that run no program.
type site struct {
	gitDir    string // of the worktree
	commonDir string // of the repository, or a view of it
	worktree  string // empty is none
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

// within is a call in a recorded repository. Its configuration is whatever is written there by now,
// so this is only for commands that run no program of its choice.
func within(repo agency.Repo, args ...string) call {
	return call{dir: repo.Root, site: site{gitDir: repo.CommonDir, commonDir: repo.CommonDir}, args: args}
}

// writing is a call in a recorded repository that writes a ref.
func writing(repo agency.Repo, ref string, args ...string) call {
	c := within(repo, args...)
	c.writes = refOf{repo.CommonDir, ref}
	return c
}

// gitDir returns the folder in which the repository keeps its knowledge of the worktree at path. It
// does not read the worktree itself. E_NOT_GIT_REPO: the repository knows of none there.
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

// isWorktree reports whether git keeps its knowledge of the worktree at a canonical path in dir.
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
	return agency.Errorf(agency.CodeNotGitRepo, "%s is no worktree of the repository at %s", path, repo.Root).
		WithHint("repair it: git -C %s worktree repair -- %s", agency.ShellWord(repo.Root), agency.ShellWord(path))
}

// nested is the site of a repository inside a worktree, without a view yet. ok is false when it
// cannot be told.
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

// discovered is a call that lets git discover the repository of a folder. A bare repository that
// lies in the worktree of another one came with its files, so it is E_NOT_GIT_REPO: its
// configuration is not the user's.
func discovered(dir string, args ...string) (call, error) {
	c := call{dir: dir, args: args}
	bare := ""
	for at := canonical(dir); ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			if bare == "" {
				return c, nil
			}
			return c, agency.Errorf(agency.CodeNotGitRepo, "%s is a bare repository inside the worktree %s, and its configuration came with the files", bare, at).
				WithHint("if it is yours, move it out of %s", agency.ShellWord(at))
		}
		if bare == "" && looksBare(at) {
			if c.bare, bare = true, at; filepath.Base(at) == ".git" {
				return c, nil // of the worktree around it
			}
		}
		if at == filepath.Dir(at) {
			return c, nil
		}
	}
}

// looksBare reports whether git would take a folder for a git directory.
func looksBare(dir string) bool {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}
