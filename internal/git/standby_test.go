package git_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/git"
)

// standbyRepo makes a repository whose files come out in many ways, with two commits.
func standbyRepo(t *testing.T, g *git.Git) (repo agency.Repo, commits [2]string) {
	t.Helper()
	root := filepath.Join(tempDir(t), "repo")
	newRepo(t, root)
	sh(t, root, "config", "core.autocrlf", "true")
	for path, text := range map[string]string{
		".gitattributes": "*.unix text eol=lf\n*.bin -text\n", ".gitignore": "ignored/\n", "deep/er/file.txt": "one\ntwo\n",
		"a.unix": "one\n", "a.bin": "\r\n\x00", "run.sh": "#!/bin/sh\n", "goes": "away\n", "wörter mit leer": "ä\n",
	} {
		write(t, filepath.Join(root, path), text)
	}
	check(t, os.Chmod(filepath.Join(root, "run.sh"), 0o755))
	check(t, os.Symlink("deep/er", filepath.Join(root, "link")))
	sh(t, root, "add", "-A")
	sh(t, root, "commit", "-qm", "first")
	commits[0] = sh(t, root, "rev-parse", "HEAD")
	check(t, os.Remove(filepath.Join(root, "goes")))
	write(t, filepath.Join(root, "deep/er/file.txt"), "other\n")
	write(t, filepath.Join(root, "new/file"), "new\n")
	sh(t, root, "add", "-A")
	sh(t, root, "commit", "-qm", "second")
	commits[1] = sh(t, root, "rev-parse", "HEAD")
	repo, err := g.Discover(t.Context(), root)
	check(t, err)
	repo, err = g.Record(t.Context(), repo)
	check(t, err)
	return repo, commits
}

// content describes everything in a worktree: its files with mode and content, its index, and what
// git says of it.
func content(t *testing.T, path string) []string {
	t.Helper()
	lines := []string{sh(t, path, "ls-files", "--stage"), sh(t, path, "status", "--porcelain", "--ignored"), sh(t, path, "rev-parse", "HEAD")}
	check(t, filepath.WalkDir(path, func(at string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(path, at)
		if err != nil || rel == ".git" {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		line := fmt.Sprintf("%s %s", rel, info.Mode())
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(at)
			lines = append(lines, fmt.Sprintf("%s %q", line, data))
			return err
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(at)
			lines = append(lines, line+" "+target)
			return err
		default:
			lines = append(lines, line)
			return nil
		}
	}))
	return lines
}

func free() (func(), error) { return func() {}, nil }

func TestStandbyIsLikeANewWorktree(t *testing.T) {
	t.Parallel()
	for name, from := range map[string]int{"made at the commit": 1, "moved to the commit": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGit()
			repo, commits := standbyRepo(t, g)
			fresh, ahead := filepath.Join(tempDir(t), "fresh"), filepath.Join(tempDir(t), "ahead")
			check(t, g.AddWorktree(t.Context(), repo, fresh, "agency/fresh", commits[1], agency.OwnPrograms))

			check(t, g.AddStandby(t.Context(), repo, ahead, commits[from], free))
			before, err := g.StandbyState(repo, ahead)
			check(t, err)
			if n, err := g.CountFiles(repo, ahead); err != nil || n != strings.Count(sh(t, ahead, "ls-files"), "\n")+1 {
				t.Errorf("got %d files, %v", n, err)
			}
			if from != 1 {
				moved, err := g.MoveStandby(t.Context(), repo, ahead, commits[from], commits[1], nil)
				if err != nil || !moved {
					t.Fatalf("got %t, %v", moved, err)
				}
				if after, err := g.StandbyState(repo, ahead); err != nil || after == before {
					t.Errorf("got %q, %v", after, err)
				}
			}
			before, err = g.StandbyState(repo, ahead)
			check(t, err)
			write(t, filepath.Join(ahead, "planted.txt"), "by an agent of another run\n")
			if after, err := g.StandbyState(repo, ahead); err != nil || after == before {
				t.Errorf("a planted file is not noticed: %v", err)
			}
			check(t, os.Remove(filepath.Join(ahead, "planted.txt")))
			check(t, g.TakeStandby(t.Context(), repo, ahead, "agency/ahead"))
			wantWorktree(t, g, repo, ahead, "agency/ahead", true)
			if diff := cmp.Diff(content(t, fresh), content(t, ahead)); diff != "" {
				t.Errorf("it differs from a new worktree:\n%s", diff)
			}
			_, err = g.StandbyState(repo, ahead)
			wantCode(t, err, agency.CodeInvalidState)
			sh(t, ahead, "checkout", "-q", "--detach")
			wantCode(t, g.TakeStandby(t.Context(), repo, ahead, "agency/fresh"), agency.CodeBranchExists)
		})
	}
}

func TestMoveStandbyRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(t *testing.T, root, ahead string)
		inputs []string
	}{
		"changed attributes": {change: func(t *testing.T, root, _ string) {
			write(t, filepath.Join(root, "deep/.gitattributes"), "*.txt -text\n")
		}},
		"a changed input": {change: func(t *testing.T, root, _ string) { write(t, filepath.Join(root, "deep/er/more"), "x\n") }, inputs: []string{"deep"}},
		"a file in the way": {change: func(t *testing.T, root, ahead string) {
			write(t, filepath.Join(root, "made"), "x\n")
			write(t, filepath.Join(ahead, "made"), "by the setup\n")
		}},
		"an ignored file in the way": {change: func(t *testing.T, root, ahead string) {
			write(t, filepath.Join(root, "ignored/file"), "x\n")
			write(t, filepath.Join(ahead, "ignored/file"), "by the setup\n")
			sh(t, root, "add", "-f", "ignored/file")
		}},
		"a file that the setup changed": {change: func(t *testing.T, root, ahead string) {
			write(t, filepath.Join(root, "a.unix"), "two\n")
			write(t, filepath.Join(ahead, "a.unix"), "three\n")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGit()
			repo, commits := standbyRepo(t, g)
			ahead := filepath.Join(tempDir(t), "ahead")
			check(t, g.AddStandby(t.Context(), repo, ahead, commits[1], free))
			tt.change(t, repo.Root, ahead)
			sh(t, repo.Root, "add", "-A")
			sh(t, repo.Root, "commit", "-qm", "third")
			moved, err := g.MoveStandby(t.Context(), repo, ahead, commits[1], sh(t, repo.Root, "rev-parse", "HEAD"), tt.inputs)
			if err != nil || moved {
				t.Errorf("got %t, %v", moved, err)
			}
		})
	}
}

func TestCheckoutKey(t *testing.T) {
	t.Parallel()
	g := newGit()
	repo, _ := standbyRepo(t, g)
	key := func() string {
		t.Helper()
		recorded, err := g.Record(t.Context(), repo)
		check(t, err)
		key, err := g.CheckoutKey(t.Context(), recorded)
		check(t, err)
		return key
	}
	first := key()
	if first == "" || key() != first {
		t.Fatalf("got %q, then %q", first, key())
	}
	sh(t, repo.Root, "config", "user.email", "another@example.com")
	if key() != first {
		t.Error("a setting that changes no file changes the key")
	}
	sh(t, repo.Root, "config", "core.autocrlf", "false")
	second := key()
	if second == first || second == "" {
		t.Errorf("got %q with other line endings", second)
	}
	write(t, filepath.Join(repo.CommonDir, "info/attributes"), "*.txt -text\n")
	if third := key(); third == second || third == "" {
		t.Errorf("got %q with other attributes", third)
	}
	hook := filepath.Join(repo.CommonDir, "hooks/post-checkout")
	write(t, hook, "#!/bin/sh\n")
	check(t, os.Chmod(hook, 0o755))
	if got := key(); got != "" {
		t.Errorf("got %q with a hook", got)
	}
	check(t, os.Remove(hook))
	sh(t, repo.Root, "config", "core.hooksPath", ".hooks")
	if got := key(); got != "" {
		t.Errorf("got %q with hooks that come with the files", got)
	}
	sh(t, repo.Root, "config", "--unset", "core.hooksPath")
	sh(t, repo.Root, "sparse-checkout", "set", "deep")
	if got := key(); got != "" {
		t.Errorf("got %q with a sparse checkout", got)
	}
}

// A setting that names a program came after the record: it does not run in a standby.
func TestStandbyRunsNoNewProgram(t *testing.T) {
	t.Parallel()
	g := newGit()
	repo, commits := standbyRepo(t, g)
	trace := filepath.Join(tempDir(t), "trace")
	write(t, filepath.Join(repo.CommonDir, "info/attributes"), "* filter=evil\n")
	sh(t, repo.Root, "config", "filter.evil.smudge", "touch "+trace+"; cat")
	sh(t, repo.Root, "config", "core.fsmonitor", "touch "+trace)
	hook := filepath.Join(repo.CommonDir, "hooks/post-checkout")
	write(t, hook, "#!/bin/sh\ntouch "+trace+"\n")
	check(t, os.Chmod(hook, 0o755))
	ahead := filepath.Join(tempDir(t), "ahead")
	check(t, g.AddStandby(t.Context(), repo, ahead, commits[0], free))
	if moved, err := g.MoveStandby(t.Context(), repo, ahead, commits[0], commits[1], nil); err != nil || !moved {
		t.Errorf("got %t, %v", moved, err)
	}
	check(t, g.TakeStandby(t.Context(), repo, ahead, "agency/x"))
	if _, err := os.Lstat(trace); err == nil {
		t.Error("a program ran that the record does not name")
	}
}
