package git

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agency"
)

// A view is a git common directory of agency's own. Its links lead to the objects, refs and other
// parts of a repository, and its configuration is the one that the run recorded. Git that uses a
// view never reads the repository's own configuration, which an agent may be able to write, and
// finds no hooks.

// own are the parts of a git directory that a view does not take from the repository.
var own = []string{"config", "config.worktree", "commondir", "gitdir", "hooks", "HEAD", "index"}

// needed are the parts that a view links to even if the repository does not have them yet.
var needed = []string{"objects", "refs", "packed-refs", "logs", "info", "worktrees", "shallow"}

// through returns the site of the worktree at path, with a view of its repository.
func (g *program) through(ctx context.Context, repo agency.Repo, path string) (site, error) {
	dir, err := gitDir(repo, path)
	if err != nil {
		return site{}, err
	}
	s, err := g.viewed(ctx, repo)
	s.gitDir, s.worktree = dir, path
	return s, err
}

// viewed returns the site of a repository without a worktree, with a view of it.
func (g *program) viewed(ctx context.Context, repo agency.Repo) (site, error) {
	return g.view(ctx, repo)
}

// merging is viewed for merges. They follow the attributes that the files bring, and not those in the
// repository's folder info: an agent can write them, and "* merge=union" would hide every conflict.
func (g *program) merging(ctx context.Context, repo agency.Repo) (site, error) {
	return g.view(ctx, repo, "info")
}

// view returns the site of a repository with a view that leaves out some parts of it.
func (g *program) view(ctx context.Context, repo agency.Repo, less ...string) (site, error) {
	text, err := g.configuration(ctx, repo)
	if err != nil {
		return site{}, err
	}
	key := strings.Join(append(less, repo.CommonDir, digest(text)), "\x00")
	g.mu.Lock()
	defer g.mu.Unlock()
	view, ok := g.views[key]
	if _, err := os.Lstat(filepath.Join(view, "config")); !ok || err != nil {
		if view, err = g.makeView(repo.CommonDir, text, less...); err != nil {
			return site{}, err
		}
		g.views[key] = view
	}
	return site{gitDir: repo.CommonDir, commonDir: view}, nil
}

// makeView makes a view of a repository in a temporary folder, without some parts of it.
func (g *program) makeView(commonDir, config string, less ...string) (string, error) {
	entries, err := os.ReadDir(commonDir)
	if err != nil {
		return "", err
	}
	names := slices.Clone(needed)
	for _, entry := range entries {
		if name := entry.Name(); !slices.Contains(own, name) && !slices.Contains(names, name) && !strings.HasSuffix(name, ".lock") {
			names = append(names, name)
		}
	}
	view, err := g.tempDir("view-")
	if err != nil {
		return "", err
	}
	for _, name := range names {
		if slices.Contains(less, name) {
			continue
		}
		err = errors.Join(err, os.Symlink(filepath.Join(commonDir, name), filepath.Join(view, name)))
	}
	err = errors.Join(err, os.WriteFile(filepath.Join(view, "config"), []byte(config+format(always(commonDir, config))), 0o600))
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(view))
	}
	return view, nil
}

// always returns the settings of every view: an existing file is read even if the index marks it as
// not checked out, the index is not trusted about untracked files, and objects of git-lfs are
// stored in the repository instead of the view.
func always(commonDir, config string) []setting {
	list := []setting{{key: "core.sparsecheckout", value: "true"}, {key: "core.untrackedcache", value: "false"}}
	if !strings.Contains(config, "[lfs]\n\tstorage") {
		list = append(list, setting{key: "lfs.storage", value: filepath.Join(commonDir, "lfs")})
	}
	return list
}

// hasWork reports whether a repository inside a worktree is dirty, or has commits or a stash that no
// remote has. Git runs there without any of that repository's programs. ok is false if this cannot be
// determined; the repository may then contain any work.
func (g *program) hasWork(ctx context.Context, dir string, depth int) (work, ok bool) {
	s, ok := nested(dir)
	if !ok || depth == 0 {
		return false, false
	}
	list, err := g.readSettings(ctx, s.commonDir)
	if err != nil {
		return false, false
	}
	if s.commonDir, err = g.makeView(s.commonDir, format(neutral(list))); err != nil {
		return false, false
	}
	defer func() { _ = os.RemoveAll(s.commonDir) }()
	ask := func(args ...string) (string, error) {
		return g.do(ctx, call{dir: dir, site: s, complete: true, args: args})
	}
	changes, err1 := ask("status", "--porcelain", "-z", "--untracked-files=normal", "--ignore-submodules=dirty")
	// Git takes a glob for a folder unless it has a special character.
	commits, err2 := ask("rev-list", "--max-count=1", "HEAD", "--branches", "--glob=refs/stas[h]", "--not", "--remotes", "--tags")
	files, err3 := ask("ls-files", "-v", "--stage", "-z")
	if errors.Join(err1, err2, err3) != nil {
		return false, false
	}
	e := parseEntries(files)
	if changes+commits != "" || len(e.assumed) > 0 {
		return true, true
	}
	for _, path := range e.links {
		inner := filepath.Join(dir, path)
		if _, err := os.Lstat(filepath.Join(inner, ".git")); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if work, ok := g.hasWork(ctx, inner, depth-1); work || !ok {
			return work, ok
		}
	}
	return false, true
}
