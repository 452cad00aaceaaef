package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agency"
)

// Snapshot saves everything in a worktree that is not ignored under ref, as two commits: what is staged, and on top of it
// what is in the files. During a merge with conflicts the first is left out, as git cannot write it. The worktree, its
// index and its HEAD stay as they are, no hook runs and nothing is signed. If ref exists its reflog keeps the old value.
// When it returns, what it saved is on the disk.
//
// Saved.Files counts the files that differ from HEAD. Saved.Nested names the repositories inside the worktree, relative
// to it, that have work of their own: it is not saved.
func (g *Git) Snapshot(ctx context.Context, worktree, ref, message string) (agency.Saved, error) {
	saved, err := g.snapshot(ctx, worktree, ref, message)
	if err != nil {
		return agency.Saved{}, fmt.Errorf("save worktree %s: %w", worktree, err)
	}
	return saved, nil
}

func (g *Git) snapshot(ctx context.Context, worktree, ref, message string) (agency.Saved, error) {
	temp, err := g.tempDir()
	if err != nil {
		return agency.Saved{}, err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	s := saver{git: g, worktree: worktree, index: filepath.Join(temp, "index")}
	if err := s.copyIndex(ctx); err != nil {
		return agency.Saved{}, err
	}
	head, err := s.head(ctx)
	if err != nil {
		return agency.Saved{}, err
	}
	parent, err := s.commitIndex(ctx, head, message)
	if err != nil {
		return agency.Saved{}, err
	}
	nested, err := s.addAll(ctx)
	if err != nil {
		return agency.Saved{}, err
	}
	tree, err := s.line(ctx, "write-tree")
	if err != nil {
		return agency.Saved{}, err
	}
	commit, err := s.commit(ctx, tree, parent, "worktree: "+message)
	if err != nil {
		return agency.Saved{}, err
	}
	files, err := s.countFiles(ctx, head, tree)
	if err != nil {
		return agency.Saved{}, err
	}
	if _, err := s.run(ctx, "", "update-ref", "--create-reflog", "-m", message, ref, commit); err != nil {
		return agency.Saved{}, err
	}
	return agency.Saved{Ref: ref, Commit: commit, Files: files, Nested: nested}, nil
}

// saver takes one snapshot, with an index of its own.
type saver struct {
	git      *Git
	worktree string
	index    string
}

func (s *saver) run(ctx context.Context, input string, args ...string) (string, error) {
	return s.git.do(ctx, call{
		dir: s.worktree,
		settings: []string{
			"core.hooksPath=/dev/null",
			"core.splitIndex=false",                    // else a shared part would be written beside the real index
			"core.safecrlf=false",                      // a doubt about line ends is no reason to lose a file
			"core.fsync=all", "core.fsyncMethod=batch", // the files go next, so this must stay
		},
		args: args,
		env: []string{
			"GIT_INDEX_FILE=" + s.index,
			"GIT_AUTHOR_NAME=agency", "GIT_AUTHOR_EMAIL=agency@localhost",
			"GIT_COMMITTER_NAME=agency", "GIT_COMMITTER_EMAIL=agency@localhost",
		},
		input: input,
	})
}

// line is run for an answer of one line.
func (s *saver) line(ctx context.Context, args ...string) (string, error) {
	out, err := s.run(ctx, "", args...)
	return strings.TrimSuffix(out, "\n"), err
}

// paths is run for an answer of paths that end in NUL.
func (s *saver) paths(ctx context.Context, args ...string) ([]string, error) {
	out, err := s.run(ctx, "", args...)
	if err != nil || out == "" {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(out, "\x00"), "\x00"), nil
}

// copyIndex copies the worktree's index, with its time: git takes a file that changed later than the index was written
// for possibly changed, and would miss the change if the copy looked younger.
func (s *saver) copyIndex(ctx context.Context) error {
	path, err := s.git.run(ctx, s.worktree, "rev-parse", "--path-format=absolute", "--git-path", "index")
	if err != nil {
		return err
	}
	from, err := os.Open(strings.TrimSuffix(path, "\n"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing was ever staged
	}
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	info, err := from.Stat()
	if err != nil {
		return err
	}
	to, err := os.OpenFile(s.index, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	if err := errors.Join(err, to.Close()); err != nil {
		return err
	}
	return os.Chtimes(s.index, info.ModTime(), info.ModTime())
}

// head is the commit of HEAD, empty before the first.
func (s *saver) head(ctx context.Context) (string, error) {
	head, err := s.line(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if exited(err, 1) {
		return "", nil
	}
	return head, err
}

// commitIndex commits what is staged on top of head. Where that is impossible it is head itself.
func (s *saver) commitIndex(ctx context.Context, head, message string) (string, error) {
	unmerged, err := s.paths(ctx, "ls-files", "--unmerged", "-z")
	if err != nil || len(unmerged) > 0 {
		return head, err
	}
	tree, err := s.line(ctx, "write-tree")
	if err != nil {
		return "", err
	}
	return s.commit(ctx, tree, head, "index: "+message)
}

// addAll stages everything that is not ignored. It names the repositories in the worktree that have work of their own.
func (s *saver) addAll(ctx context.Context) (nested []string, err error) {
	untracked, err := s.paths(ctx, "ls-files", "--others", "--exclude-standard", "-z")
	if err != nil {
		return nil, err
	}
	ahead, unreadable, err := s.submodules(ctx)
	if err != nil {
		return nil, err
	}
	for _, path := range untracked {
		// Git lists files. What looks like a folder is a repository that it does not enter.
		if path, ok := strings.CutSuffix(path, "/"); ok {
			unreadable = append(unreadable, path)
		}
	}
	var pathspecs strings.Builder
	pathspecs.WriteString(".\x00")
	for _, path := range unreadable { // git add would stop at them
		pathspecs.WriteString(":(exclude,literal)" + path + "\x00")
	}
	_, err = s.run(ctx, pathspecs.String(), "add", "--all", "--sparse", "--pathspec-from-file=-", "--pathspec-file-nul")
	return append(append([]string{}, ahead...), unreadable...), err
}

// submodules names the checked-out submodules that are dirty or have commits that no remote has, and those that git
// cannot read, which may hold anything.
func (s *saver) submodules(ctx context.Context) (ahead, unreadable []string, err error) {
	entries, err := s.paths(ctx, "ls-files", "--stage", "-z")
	if err != nil {
		return nil, nil, err
	}
	var links []string
	for _, entry := range entries {
		if mode, path, _ := strings.Cut(entry, "\t"); strings.HasPrefix(mode, "160000 ") {
			links = append(links, path)
		}
	}
	for _, path := range slices.Compact(links) { // a conflict lists one several times
		dir := filepath.Join(s.worktree, path)
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err != nil {
			continue // not checked out
		}
		changes, err := s.git.run(ctx, dir, "status", "--porcelain", "-z", "--untracked-files=normal", "--ignore-submodules=none")
		var commits string
		if err == nil {
			commits, err = s.git.run(ctx, dir, "rev-list", "--max-count=1", "HEAD", "--branches", "--not", "--remotes", "--tags")
		}
		switch {
		case err != nil:
			unreadable = append(unreadable, path)
		case changes+commits != "":
			ahead = append(ahead, path)
		}
	}
	return ahead, unreadable, nil
}

func (s *saver) commit(ctx context.Context, tree, parent, message string) (string, error) {
	args := []string{"commit-tree", "--no-gpg-sign", "-m", message}
	if parent != "" {
		args = append(args, "-p", parent)
	}
	return s.line(ctx, append(args, tree)...)
}

// countFiles counts the files in which tree differs from head.
func (s *saver) countFiles(ctx context.Context, head, tree string) (int, error) {
	args := []string{"diff-tree", "-r", "--no-renames", "--name-only", "-z", head, tree}
	if head == "" {
		args = []string{"ls-tree", "-r", "--name-only", "-z", tree}
	}
	paths, err := s.paths(ctx, args...)
	return len(paths), err
}
