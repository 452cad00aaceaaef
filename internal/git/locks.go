package git

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"agency"
)

// Lock is a file by which one git keeps the others away from what it changes. A git that is killed
// leaves it behind, and from then on every other one fails.
type Lock struct {
	Path string
	At   time.Time // when it was made or last written
}

// Locks lists the lock files in a repository that can be in the way of runs: of the branches, of
// agency's own refs, of what all worktrees share, and of the worktrees at the paths. Whether a git
// holds one it cannot say.
func (g *program) Locks(repo agency.Repo, branches, worktrees []string) ([]Lock, error) {
	paths := []string{filepath.Join(repo.CommonDir, "config.lock"), filepath.Join(repo.CommonDir, "packed-refs.lock")}
	for _, branch := range branches {
		paths = append(paths, filepath.Join(repo.CommonDir, "refs", "heads", filepath.FromSlash(branch)+".lock"))
	}
	// The links in the worktrees themselves are not asked: an agent can turn them elsewhere.
	ours := map[string]bool{}
	for _, worktree := range worktrees {
		ours[canonical(worktree)] = true
	}
	linked, _ := filepath.Glob(filepath.Join(repo.CommonDir, "worktrees", "*"))
	for _, dir := range linked {
		if at, err := linkedAt(dir); err == nil && ours[at] {
			paths = append(paths, filepath.Join(dir, "index.lock"), filepath.Join(dir, "HEAD.lock"))
		}
	}
	err := filepath.WalkDir(filepath.Join(repo.CommonDir, "refs", "agency"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".lock") {
			paths = append(paths, path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	locks := []Lock{}
	for _, path := range paths {
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
			locks = append(locks, Lock{Path: path, At: info.ModTime()})
		}
	}
	return locks, nil
}
