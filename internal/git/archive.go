package git

import (
	"context"
	"fmt"
	"strings"

	"agency"
	"agency/internal/file"
)

// Folder returns the tree of a folder of a commit, "." for all of it; empty when there is none.
func (g *History) Folder(ctx context.Context, repo agency.Repo, commit, path string) (string, error) {
	if path == "." {
		return g.Tree(ctx, repo, commit)
	}
	c := within(repo, "ls-tree", "-d", "--full-tree", "-z", commit, "--", path)
	c.env = []string{"GIT_LITERAL_PATHSPECS=1"}
	out, err := g.do(ctx, c)
	if err != nil {
		return "", fmt.Errorf("find the folder %s of %.12s: %w", path, commit, err)
	}
	// MODE TYPE OBJECT<TAB>PATH
	entry, name, _ := strings.Cut(strings.TrimSuffix(out, "\x00"), "\t")
	fields := strings.Fields(entry)
	if name != path || len(fields) != 3 || fields[1] != "tree" {
		return "", nil
	}
	return fields[2], nil
}

// Archive returns the files of a tree as a tar archive, as a worktree would hold them. An archive
// of more than limit bytes is file.ErrTooLarge.
func (g *History) Archive(ctx context.Context, repo agency.Repo, tree string, limit int) ([]byte, error) {
	at, err := g.viewed(ctx, repo)
	if err != nil {
		return nil, err
	}
	out, err := g.do(ctx, call{dir: repo.Root, site: at, args: []string{"archive", "--format=tar", tree}, most: limit + 1})
	if err != nil {
		return nil, fmt.Errorf("pack the files of the tree %.12s: %w", tree, err)
	}
	if len(out) > limit {
		return nil, file.ErrTooLarge
	}
	return []byte(out), nil
}
