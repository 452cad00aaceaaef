package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agency"
	"agency/internal/file"
)

// excludeFile lists what git ignores in all worktrees of a repository, relative to its git common
// directory.
const excludeFile = "info/exclude"

// Exclude adds one line to the repository's info/exclude, unless the file has it. Everything else
// in the file stays as it is. Two concurrent calls may lose one of the lines: hold the repository's
// lock.
func (g *Repos) Exclude(repo agency.Repo, pattern string) error {
	old, err := file.ReadBeneath(repo.CommonDir, excludeFile, 1<<20)
	perm := fs.FileMode(0o644)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return unwritable(repo, err)
	default:
		info, err := os.Lstat(filepath.Join(repo.CommonDir, excludeFile))
		if err != nil {
			return unwritable(repo, err)
		}
		perm = info.Mode().Perm()
	}
	text := string(old)
	if slices.Contains(strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n"), pattern) {
		return nil
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if err := file.WriteBeneath(repo.CommonDir, excludeFile, []byte(text+pattern+"\n"), perm); err != nil {
		return unwritable(repo, err)
	}
	return nil
}

// Ignored returns those of the paths, relative to a worktree, that git ignores there.
func (g *Trees) Ignored(ctx context.Context, repo agency.Repo, worktree string, paths []string) ([]string, error) {
	at, err := g.through(ctx, repo, worktree)
	if err != nil {
		return nil, err
	}
	out, err := g.do(ctx, call{dir: worktree, site: at, args: []string{"check-ignore", "-z", "--stdin"}, input: strings.Join(paths, "\x00") + "\x00"})
	switch {
	case exited(err, 1): // none
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("ask what is ignored in %s: %w", worktree, err)
	}
	return strings.Split(strings.TrimSuffix(out, "\x00"), "\x00"), nil
}
