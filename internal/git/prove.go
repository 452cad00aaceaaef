package git

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"agency"
	"agency/internal/file"
	"agency/internal/plain"
)

// Prove checks that the recorded repository has the commits under their refs, by name, and every
// object of them that the commit base does not have. It reads and hashes each object, so it finds
// an object that an agent replaced. Prove also fails if the repository keeps any of the refs or
// objects inside the worktree, because they would be deleted with it. Every failure is
// E_CLEANUP_FAILED; then nothing may be deleted.
func (g *Trees) Prove(ctx context.Context, repo agency.Repo, worktree, base string, commits map[string]string) error {
	fail := func(err error) error {
		return agency.Errorf(agency.CodeCleanupFailed, "what was saved cannot be proven to be in %s: %w", repo.CommonDir, err).
			WithHint("nothing was deleted; look at the repository: git -C %s fsck", plain.ShellWord(repo.Root))
	}
	if canonical(worktree) != repo.Root {
		if err := keptExternal(repo, worktree, commits); err != nil {
			return fail(err)
		}
	}
	args := []string{"rev-list", "--objects", "--verify-objects", "--quiet", "--missing=error"}
	for ref, commit := range commits {
		out, err := g.run(ctx, repo, "rev-parse", "--verify", "--end-of-options", ref)
		if err != nil {
			return fail(err)
		}
		if got := strings.TrimSpace(out); got != commit {
			return fail(fmt.Errorf("%s is %.12s, not %.12s", ref, got, commit))
		}
		args = append(args, commit)
	}
	if base != "" {
		args = append(args, "--not", base)
	}
	if _, err := g.run(ctx, repo, append(args, "--")...); err != nil {
		return fail(err)
	}
	return nil
}

// keptExternal fails if the repository keeps refs or objects, or borrows objects, inside a
// worktree.
func keptExternal(repo agency.Repo, worktree string, commits map[string]string) error {
	inside, err := filepath.EvalSymlinks(worktree)
	if missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	places := []string{filepath.Join(repo.CommonDir, "packed-refs")}
	for ref := range commits {
		places = append(places, filepath.Join(repo.CommonDir, filepath.FromSlash(ref)))
	}
	stores := []string{filepath.Join(repo.CommonDir, "objects")}
	for depth := 0; depth < deepest && len(stores) > 0; depth++ {
		next := []string{}
		for _, dir := range stores {
			places = append(places, append(links(dir), links(filepath.Join(dir, "pack"))...)...)
			borrowed, err := alternates(dir)
			if err != nil {
				return err
			}
			next = append(next, borrowed...)
		}
		places = append(places, stores...)
		stores = next
	}
	for _, place := range places {
		real, err := filepath.EvalSymlinks(place)
		if missing(err) {
			continue // git works without it
		}
		if err != nil {
			return err
		}
		if rel, err := filepath.Rel(inside, real); err == nil && filepath.IsLocal(rel) {
			return fmt.Errorf("%s is inside the worktree", real)
		}
	}
	return nil
}

// links returns the links in a folder.
func links(dir string) []string {
	list := []string{}
	entries, _ := os.ReadDir(dir) // git cannot read an unreadable folder either
	for _, entry := range entries {
		if entry.Type()&fs.ModeSymlink != 0 {
			list = append(list, filepath.Join(dir, entry.Name()))
		}
	}
	return list
}

// alternates returns the folders from which a folder of objects borrows others.
func alternates(dir string) ([]string, error) {
	data, err := file.ReadRegular(filepath.Join(dir, "info", "alternates"), 1<<20)
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	list := []string{}
	for line := range strings.Lines(string(data)) {
		path := strings.TrimSuffix(line, "\n")
		switch {
		case path == "" || path[0] == '#':
			continue
		case path[0] == '"':
			return nil, fmt.Errorf("the name %s in %s/info/alternates cannot be read", printable(path), dir)
		case !filepath.IsAbs(path):
			path = filepath.Join(dir, path)
		}
		list = append(list, path)
	}
	return list, nil
}
