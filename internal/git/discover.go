package git

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"agency"
)

// Discover finds the repository of a folder: the repository itself, a folder of it, or a linked worktree of it. Root is
// a function of the repository alone, whichever of these is asked. It is the main worktree; where there is none, or git
// does not know where it is (init --separate-git-dir), it is the git directory. Fingerprint is empty until EnsureID.
//
// E_INVALID_PATH: dir is no folder. E_NOT_GIT_REPO: it is in no repository that git can use.
func (g *Git) Discover(ctx context.Context, dir string) (agency.Repo, error) {
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
	return agency.Repo{Fingerprint: id, Root: root, CommonDir: p.commonDir, Toplevel: p.toplevel}, nil
}

// unusable gives a failure of git itself the code of Discover.
func unusable(dir string, err error) error {
	if f, ok := errors.AsType[*failure](err); ok && f.stderr != "" {
		return agency.Errorf(agency.CodeNotGitRepo, "git cannot use the repository of %s: %s", dir, f.words)
	}
	return err
}

// place is where a folder stands, in absolute paths without links.
type place struct {
	bare      bool
	gitDir    string // of the worktree
	commonDir string // of the repository
	toplevel  string // empty in a bare repository, and inside a git directory
}

// locate asks git for the place of dir in one process. A path may hold newlines, and then the answer cannot be taken
// apart: each question is asked on its own.
func (g *Git) locate(ctx context.Context, dir string) (place, error) {
	questions := []string{"--is-bare-repository", "--git-dir", "--git-common-dir", "--show-toplevel"}
	ask := func(questions ...string) (string, error) {
		return g.run(ctx, dir, append([]string{"rev-parse", "--path-format=absolute"}, questions...)...)
	}
	out, err := ask(questions...)
	if said(err, "must be run in a work tree") {
		// There is no toplevel, which is the last question.
		questions = questions[:3]
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
	p := place{bare: answers[0] == "true", gitDir: answers[1], commonDir: answers[2]}
	if len(answers) > 3 {
		p.toplevel = answers[3]
	}
	return p, nil
}

// root is the main worktree, or the git directory. In the usual layouts it is plain from where we stand; otherwise only
// the configuration of the repository knows.
func (g *Git) root(ctx context.Context, p place) (string, error) {
	parent, isDotGit := filepath.Dir(p.commonDir), filepath.Base(p.commonDir) == ".git"
	switch {
	case p.bare:
		return p.commonDir, nil
	case isDotGit && p.toplevel == parent:
		return parent, nil
	}
	out, err := g.do(ctx, call{
		dir:  p.commonDir,
		args: []string{"config", "-z", "--get-regexp", `^core\.(bare|worktree)$`},
		env:  []string{"GIT_DIR=" + p.commonDir},
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
