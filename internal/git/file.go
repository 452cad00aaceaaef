package git

import (
	"context"
	"fmt"
	"strings"

	"agency"
	"agency/internal/file"
)

// File returns what a file of a commit would hold in a worktree, with line ends and filters
// applied. found is false when the commit has no such file, or has a folder there. A link is
// file.ErrNotRegular, and a file of more than limit bytes is file.ErrTooLarge.
func (g *History) File(ctx context.Context, repo agency.Repo, commit, path string, limit int) (data []byte, found bool, err error) {
	fail := func(err error) ([]byte, bool, error) {
		return nil, false, fmt.Errorf("read %s of commit %.12s: %w", path, commit, err)
	}
	mode, err := g.mode(ctx, repo, commit, path)
	switch {
	case err != nil:
		return fail(err)
	case mode == "" || mode == "040000" || mode == "160000":
		return nil, false, nil
	case mode != "100644" && mode != executable:
		return fail(file.ErrNotRegular)
	}
	at, err := g.viewed(ctx, repo)
	if err != nil {
		return fail(err)
	}
	out, err := g.do(ctx, call{dir: repo.Root, site: at, args: []string{"cat-file", "--filters", commit + ":" + path}})
	if err != nil {
		return fail(err)
	}
	if len(out) > limit {
		return fail(file.ErrTooLarge)
	}
	return []byte(out), true, nil
}

// executable is the mode of an executable file.
const executable = "100755"

// Executable reports whether a commit has a file, and whether it is executable.
func (g *History) Executable(ctx context.Context, repo agency.Repo, commit, path string) (found, runs bool, err error) {
	mode, err := g.mode(ctx, repo, commit, path)
	return mode != "", mode == executable, err
}

// mode returns the mode of a path in a commit as git writes it; empty when there is no such path.
func (g *History) mode(ctx context.Context, repo agency.Repo, commit, path string) (string, error) {
	c := within(repo, "ls-tree", "--full-tree", "-z", commit, "--", path)
	c.env = []string{"GIT_LITERAL_PATHSPECS=1"}
	out, err := g.do(ctx, c)
	if err != nil {
		return "", err
	}
	// MODE TYPE OBJECT<TAB>PATH
	entry, name, _ := strings.Cut(strings.TrimSuffix(out, "\x00"), "\t")
	if name != path {
		return "", nil
	}
	mode, _, _ := strings.Cut(entry, " ")
	return mode, nil
}
