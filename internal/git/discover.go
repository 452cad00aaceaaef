package git

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agency"
)

// Discover finds the repository of a folder: the repository itself, a folder of it, or a linked
// worktree of it. All of these have the same Root. It is the main worktree. Where there is none, or
// git does not know where it is (init --separate-git-dir), Root is the git directory. Fingerprint
// is empty until EnsureID.
//
// E_INVALID_PATH: dir is not a folder. E_NOT_GIT_REPO: it is not in a repository that git can use.
func (g *Repos) Discover(ctx context.Context, dir string) (agency.Repo, error) {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return agency.Repo{}, agency.Errorf(agency.CodeInvalidPath, "%s does not exist", dir)
	case errors.Is(err, fs.ErrPermission):
		return agency.Repo{}, agency.Errorf(agency.CodePermissionDenied, "%s cannot be read: %w", dir, err)
	case err != nil:
		return agency.Repo{}, agency.Errorf(agency.CodeInvalidPath, "%s cannot be used: %w", dir, err)
	case !info.IsDir():
		return agency.Repo{}, agency.Errorf(agency.CodeInvalidPath, "%s is not a folder", dir)
	}
	p, err := g.locate(ctx, dir)
	if err != nil {
		return agency.Repo{}, unusable(dir, err)
	}
	root, err := g.root(ctx, p)
	if err != nil {
		return agency.Repo{}, unusable(dir, err)
	}
	id, err := readID(p.commonDir)
	if err != nil {
		return agency.Repo{}, err
	}
	return agency.Repo{Fingerprint: id, Root: root, CommonDir: p.commonDir, Toplevel: p.toplevel, Hooks: p.hooks}, nil
}

// unusable gives a failure of git itself the code of Discover.
func unusable(dir string, err error) error {
	if f, ok := errors.AsType[*failure](err); ok && strings.Contains(f.stderr, "unknown repository extension") {
		return agency.Errorf(agency.CodeNotGitRepo, "git cannot use the repository of %s: it does not know its extension %s", dir, f.words).
			WithHint("a newer git does: see git --version; it must be the first on your PATH")
	}
	if f, ok := errors.AsType[*failure](err); ok && f.stderr != "" {
		return agency.Errorf(agency.CodeNotGitRepo, "git cannot use the repository of %s: %s", dir, f.words)
	}
	return err
}

// place is the location of a folder in its repository, in absolute paths without links.
type place struct {
	bare      bool
	gitDir    string // of the worktree
	commonDir string // of the repository
	toplevel  string // empty in a bare repository, and inside a git directory
	hooks     string // the folder of hooks among the files of a worktree, relative to it; empty when the hooks are elsewhere
}

// locate asks git for the place of dir in one process. A path may hold newlines; then the answer
// cannot be split, and locate asks each question on its own.
func (g *Repos) locate(ctx context.Context, dir string) (place, error) {
	questions := [][]string{
		{"--git-path", "hooks"}, // as configured: relative or absolute
		{"--path-format=absolute", "--is-bare-repository"},
		{"--path-format=absolute", "--git-dir"},
		{"--path-format=absolute", "--git-common-dir"},
		{"--path-format=absolute", "--show-toplevel"},
	}
	ask := func(questions ...[]string) (string, error) {
		c, err := discovered(dir, append([]string{"rev-parse"}, slices.Concat(questions...)...)...)
		if err != nil {
			return "", err
		}
		c.hooks = true // the question is where they are
		return g.do(ctx, c)
	}
	out, err := ask(questions...)
	if said(err, "must be run in a work tree") {
		// A folder outside of a work tree, such as a bare repository, has no toplevel.
		questions = questions[:4]
		out, err = ask(questions...)
	}
	if err != nil {
		return place{}, err
	}
	answers := strings.SplitAfter(out, "\n")[:strings.Count(out, "\n")]
	if len(answers) != len(questions) {
		answers = make([]string, len(questions))
		for i, q := range questions {
			if answers[i], err = ask(q); err != nil {
				return place{}, err
			}
		}
	}
	for i := range answers {
		answers[i] = strings.TrimSuffix(answers[i], "\n")
	}
	p := place{bare: answers[1] == "true", gitDir: answers[2], commonDir: answers[3]}
	if len(answers) > 4 {
		p.toplevel = answers[4]
	}
	p.hooks = p.hooksOfFiles(dir, answers[0])
	return p, nil
}

// hooksOfFiles returns the folder of the hooks when it is among the files of a worktree, by the
// name that git gives it from dir; otherwise "".
func (p place) hooksOfFiles(dir, hooks string) string {
	if filepath.IsAbs(hooks) {
		return "" // the user's own, or the repository's seen from a linked worktree
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	rel, err := filepath.Rel(cmp.Or(p.toplevel, p.commonDir), filepath.Join(dir, hooks))
	if err != nil || filepath.Join(dir, hooks) == filepath.Join(p.commonDir, "hooks") {
		return ""
	}
	return rel
}

// root returns the main worktree, or the git directory. In the usual layouts it follows from the
// place; otherwise only the configuration of the repository names it.
func (g *Repos) root(ctx context.Context, p place) (string, error) {
	parent, isDotGit := filepath.Dir(p.commonDir), filepath.Base(p.commonDir) == ".git"
	switch {
	case p.bare:
		return p.commonDir, nil
	case isDotGit && p.toplevel == parent:
		return parent, nil
	}
	out, err := g.do(ctx, call{
		dir:  p.commonDir,
		site: site{gitDir: p.commonDir},
		args: []string{"config", "-z", "--get-regexp", `^core\.(bare|worktree)$`},
	})
	if err != nil && !exited(err, 1) { // 1: neither is set
		return "", err
	}
	bare, worktree := false, ""
	for setting := range strings.SplitSeq(out, "\x00") {
		switch key, value, _ := strings.Cut(setting, "\n"); key {
		case "core.bare":
			bare = value == "true"
		case "core.worktree":
			worktree = value
		}
	}
	switch {
	case bare:
		return p.commonDir, nil
	case worktree == "" && isDotGit:
		return parent, nil
	case worktree == "":
		return p.commonDir, nil
	case !filepath.IsAbs(worktree):
		worktree = filepath.Join(p.commonDir, worktree)
	}
	return filepath.EvalSymlinks(worktree)
}
