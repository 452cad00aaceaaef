package git

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"agency"
	"agency/internal/file"
)

// saver makes trees and commits of a worktree with an index of its own, through a view of the
// repository.
type saver struct {
	git  *program
	dir  string // the worktree, or where the repository is
	site site
	temp string // holds the index
	// apart is the folder that takes new objects instead of the repository; empty for the repository.
	apart    string
	borrowed string // one more folder of objects to read; empty for none

	nested []string       // repositories inside the worktree that have work of their own
	left   agency.LeftOut // what was too much to look at
}

// saver takes a copy of a worktree's index. The caller closes it.
func (g *Trees) saver(ctx context.Context, repo agency.Repo, worktree string) (*saver, error) {
	at, err := g.through(ctx, repo, worktree)
	if err != nil {
		return nil, err
	}
	temp, err := g.tempDir("agency-index-")
	if err != nil {
		return nil, err
	}
	s := &saver{git: g.program, dir: worktree, site: at, temp: temp, nested: []string{}}
	if err := s.copyIndex(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *saver) close() { _ = os.RemoveAll(s.temp) }

func (s *saver) index() string { return filepath.Join(s.temp, "index") }

func (s *saver) run(ctx context.Context, input string, args ...string) (string, error) {
	settings := []string{
		"core.splitIndex=false", // otherwise git writes a shared part beside the real index
		"core.safecrlf=false",   // a doubt about line ends is no reason to lose a file
	}
	if s.apart != "" {
		settings = append(settings, "core.fsync=none", "lfs.storage="+filepath.Join(s.temp, "lfs"))
	} else {
		settings = append(settings, "core.fsync=all", "core.fsyncMethod=batch") // the files are deleted next, so this must last
	}
	return s.git.do(ctx, call{
		dir: s.dir, site: s.site, settings: settings, args: args, input: input, complete: s.apart == "",
		env: append(s.objects(), "GIT_INDEX_FILE="+s.index(),
			"GIT_AUTHOR_NAME=agency", "GIT_AUTHOR_EMAIL=agency@localhost",
			"GIT_COMMITTER_NAME=agency", "GIT_COMMITTER_EMAIL=agency@localhost"),
	})
}

// objects returns the variables that tell git where to write new objects.
func (s *saver) objects() []string {
	if s.apart == "" {
		return nil
	}
	return []string{"GIT_OBJECT_DIRECTORY=" + s.apart, alternateEnv(filepath.Join(s.site.commonDir, "objects"), s.borrowed)}
}

// alternateEnv returns the variable that names folders in which git finds more objects; empty ones
// are skipped.
func alternateEnv(folders ...string) string {
	quote, quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`), []string{}
	for _, folder := range folders {
		if folder != "" {
			quoted = append(quoted, `"`+quote.Replace(folder)+`"`)
		}
	}
	return "GIT_ALTERNATE_OBJECT_DIRECTORIES=" + strings.Join(quoted, ":")
}

// line is run for an answer that is one line.
func (s *saver) line(ctx context.Context, args ...string) (string, error) {
	out, err := s.run(ctx, "", args...)
	return strings.TrimSuffix(out, "\n"), err
}

// paths is run for an answer that is a list of parts that end in NUL.
func (s *saver) paths(ctx context.Context, args ...string) ([]string, error) {
	out, err := s.run(ctx, "", args...)
	if err != nil || out == "" {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(out, "\x00"), "\x00"), nil
}

// copyIndex copies the worktree's index, including its modification time. Git reads a file again
// when it is newer than the index, and would miss the change if the copy looked younger.
func (s *saver) copyIndex() error {
	from, err := os.OpenFile(filepath.Join(s.site.gitDir, "index"), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
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
	if !info.Mode().IsRegular() {
		return file.ErrNotRegular
	}
	to, err := os.OpenFile(s.index(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	if err := errors.Join(err, to.Close()); err != nil {
		return err
	}
	return os.Chtimes(s.index(), info.ModTime(), info.ModTime())
}

// head returns the commit of HEAD, empty before the first.
func (s *saver) head(ctx context.Context) (string, error) {
	ask := func(args ...string) (string, error) { return s.run(ctx, "", args...) }
	head, err := commitOf(ask, "HEAD")
	if err == nil && head == "" {
		err = proveMissing(ask, s.site.commonDir, "HEAD")
	}
	return head, err
}

// guessHead returns the commit of HEAD without running git, from the files that usually hold it;
// empty when they do not.
func (s *saver) guessHead() string {
	text := oneLine(filepath.Join(s.site.gitDir, "HEAD"))
	if ref, ok := strings.CutPrefix(text, "ref: "); ok && filepath.IsLocal(ref) {
		text = oneLine(filepath.Join(s.site.commonDir, ref))
	}
	if !sha().MatchString(text) {
		return ""
	}
	return text
}

// oneLine returns the text of a file of one line; empty when it cannot be read.
func oneLine(path string) string {
	text, _ := file.ReadRegular(path, 4<<10)
	return strings.TrimSuffix(string(text), "\n")
}

func (s *saver) commit(ctx context.Context, tree, parent, message string) (string, error) {
	args := []string{"commit-tree", "--no-gpg-sign", "-m", message}
	if parent != "" {
		args = append(args, "-p", parent)
	}
	return s.line(ctx, append(args, tree)...)
}
