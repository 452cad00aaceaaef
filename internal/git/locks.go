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

// Lock is a file with which one git process keeps the others away from what it changes. A process
// that is killed leaves it behind, and from then on every other one fails.
type Lock struct {
	Path     string
	At       time.Time // when it was made or last written
	Worktree string    // whose index or HEAD it locks, as the caller named it; empty for a lock that all worktrees share
}

// Locks lists the lock files in a repository that can be in the way of runs and their landings:
// those of the branches, of agency's own refs, of what all worktrees share, and of the worktrees at
// the paths, which can include the main one. It does not know whether a git process holds them.
func (g *Repos) Locks(repo agency.Repo, branches, worktrees []string) ([]Lock, error) {
	shared := []string{filepath.Join(repo.CommonDir, "config.lock"), filepath.Join(repo.CommonDir, "packed-refs.lock")}
	for _, branch := range branches {
		shared = append(shared, filepath.Join(repo.CommonDir, "refs", "heads", filepath.FromSlash(branch)+".lock"))
	}
	locks := []Lock{}
	add := func(path, worktree string) {
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
			locks = append(locks, Lock{Path: path, At: info.ModTime(), Worktree: worktree})
		}
	}
	for _, path := range shared {
		add(path, "")
	}
	// The links in the worktrees themselves are not read: an agent can point them elsewhere.
	ours := map[string]string{}
	for _, worktree := range worktrees {
		ours[canonical(worktree)] = worktree
	}
	addAll := func(dir, at string) {
		if worktree, is := ours[at]; is {
			for _, name := range []string{"index.lock", "HEAD.lock", "ORIG_HEAD.lock"} {
				add(filepath.Join(dir, name), worktree)
			}
		}
	}
	addAll(repo.CommonDir, canonical(repo.Root))
	linked, _ := filepath.Glob(filepath.Join(repo.CommonDir, "worktrees", "*"))
	for _, dir := range linked {
		if at, err := linkedAt(dir); err == nil {
			addAll(dir, at)
		}
	}
	err := filepath.WalkDir(filepath.Join(repo.CommonDir, "refs", "agency"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".lock") {
			add(path, "")
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return locks, err
}
