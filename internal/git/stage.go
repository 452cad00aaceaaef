package git

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agency"
)

// deepest is the depth to which agency looks for repositories inside repositories.
const deepest = 5

// These limit what is read of a worktree to find its changes.
const (
	mostFiles = 5000
	mostBytes = 64 << 20
	mostOfOne = 16 << 20
	mostNamed = 20
)

// entries are the special files of an index.
type entries struct {
	links    []string // repositories
	assumed  []string // files that git assumes unchanged on request
	unmerged bool
}

// parseEntries reads the output of ls-files -v --stage -z: TAG MODE OBJECT STAGE<TAB>PATH.
func parseEntries(out string) entries {
	var e entries
	for line := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		facts, path, _ := strings.Cut(line, "\t")
		fields := strings.Fields(facts)
		if len(fields) != 4 {
			continue
		}
		if fields[1] == "160000" && !slices.Contains(e.links, path) { // a conflict lists a path several times
			e.links = append(e.links, path)
		}
		if tag := fields[0]; tag == strings.ToLower(tag) {
			e.assumed = append(e.assumed, path)
		}
		e.unmerged = e.unmerged || fields[3] != "0"
	}
	return e
}

// entries reads the index, and clears the mark "assume unchanged" in the saver's own copy.
func (s *saver) entries(ctx context.Context) (entries, error) {
	e, err := s.listed(ctx)
	if err == nil {
		err = s.doubt(ctx, e)
	}
	return e, err
}

// listed reads the index.
func (s *saver) listed(ctx context.Context) (entries, error) {
	if e, ok := readIndex(s.index()); ok {
		return e, nil
	}
	out, err := s.run(ctx, "", "ls-files", "-v", "--stage", "-z")
	return parseEntries(out), err
}

// doubt clears the mark "assume unchanged" of entries in the saver's own copy of the index.
func (s *saver) doubt(ctx context.Context, e entries) error {
	if len(e.assumed) == 0 {
		return nil
	}
	_, err := s.run(ctx, lines0(e.assumed), "update-index", "--no-assume-unchanged", "-z", "--stdin")
	return err
}

// lines0 returns paths, each followed by NUL.
func lines0(paths []string) string {
	var b strings.Builder
	for _, path := range paths {
		b.WriteString(path + "\x00")
	}
	return b.String()
}

// addAll stages everything that is not ignored. It notes the repositories in the worktree that have
// unsaved work.
func (s *saver) addAll(ctx context.Context) error {
	e, err := s.entries(ctx)
	if err != nil {
		return err
	}
	return s.add(ctx, e)
}

// findNested notes the repositories in the index that have unsaved work.
func (s *saver) findNested(ctx context.Context, e entries) {
	for _, path := range e.links {
		dir := filepath.Join(s.dir, path)
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err != nil {
			continue // not checked out
		}
		if work, ok := s.git.hasWork(ctx, dir, deepest); work || !ok {
			s.nested = append(s.nested, path)
		}
	}
}

// add stages the differences from the index. It names each file: with a pattern, git would run in
// every repository inside the worktree, with the configuration of that repository.
func (s *saver) add(ctx context.Context, e entries) error {
	s.findNested(ctx, e)
	changes, err := s.paths(ctx, "diff-files", "-z", "--name-status", "--no-renames", "--ignore-submodules=dirty")
	if err != nil {
		return err
	}
	untracked, err := s.paths(ctx, "ls-files", "--others", "--exclude-standard", "-z")
	if err != nil {
		return err
	}
	gone, there := []string{}, []string{}
	for i := 0; i+1 < len(changes); i += 2 {
		if changes[i] == "D" {
			gone = append(gone, changes[i+1])
		} else {
			there = append(there, changes[i+1])
		}
	}
	for _, path := range append(there, untracked...) {
		// Git lists only files, so a folder in the list is a repository that git does not enter.
		info, err := os.Lstat(filepath.Join(s.dir, path))
		if err == nil && info.IsDir() && !slices.Contains(e.links, path) {
			s.nested = append(s.nested, strings.TrimSuffix(path, "/"))
		}
	}
	there = slices.DeleteFunc(append(there, untracked...), func(path string) bool {
		return slices.Contains(s.nested, strings.TrimSuffix(path, "/")) && !slices.Contains(e.links, path)
	})
	if s.apart != "" {
		there = s.bounded(there)
	}
	if len(gone) > 0 {
		if _, err := s.run(ctx, lines0(gone), "update-index", "--force-remove", "-z", "--stdin"); err != nil {
			return err
		}
	}
	if len(there) == 0 {
		return nil
	}
	_, err = s.run(ctx, lines0(there), "update-index", "--add", "--remove", "--replace", "-z", "--stdin")
	return err
}

// bounded returns those of the files that are few and small enough to read.
func (s *saver) bounded(paths []string) []string {
	kept, total := []string{}, int64(0)
	for _, path := range paths {
		size := int64(0)
		if info, err := os.Lstat(filepath.Join(s.dir, path)); err == nil && info.Mode().IsRegular() {
			size = info.Size()
		}
		if size <= mostOfOne && total+size <= mostBytes && len(kept) < mostFiles {
			kept, total = append(kept, path), total+size
			continue
		}
		s.left.Files++
		s.left.Bytes += size
		if len(s.left.Named) < mostNamed {
			s.left.Named = append(s.left.Named, agency.LeftFile{Path: path, Bytes: size})
		}
	}
	return kept
}
