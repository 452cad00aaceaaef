package git_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agency"
)

// oddNames are names of folders that many tools handle wrongly.
var oddNames = []string{
	"plain", "with space", "new\nline", "\n", "ends in newline\n", "true\nfalse", "quote'\"`$(x)\\", "🚦 été", "-dash", "*[a-z]?", "tab\t",
}

// Discovery from every folder of a repository finds the same repository.
func TestDiscover(t *testing.T) {
	t.Parallel()
	for _, name := range oddNames {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, base := newGit(), filepath.Join(tempDir(t), name)
			root, linked := filepath.Join(base, name), filepath.Join(base, "linked "+name)
			newRepo(t, root)
			sh(t, root, "worktree", "add", "-q", "-b", "l", linked)
			want := agency.Repo{Root: root, CommonDir: filepath.Join(root, ".git")}
			link := filepath.Join(base, "link")
			check(t, os.Symlink(root, link))
			for dir, toplevel := range map[string]string{
				root:                                root,
				filepath.Join(root, "sub"):          root,
				link:                                root,
				linked:                              linked,
				filepath.Join(linked, "sub"):        linked,
				filepath.Join(root, ".git"):         "",
				filepath.Join(root, ".git/objects"): "",
			} {
				got, err := g.Discover(t.Context(), dir)
				check(t, err)
				want.Toplevel = toplevel
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%q (-want +got):\n%s", dir, diff)
				}
			}
		})
	}
}

func TestDiscoverBare(t *testing.T) {
	t.Parallel()
	for _, name := range append(oddNames, ".git") { // the last is the layout "project/.git bare, worktrees beside it"
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, base := newGit(), tempDir(t)
			newRepo(t, filepath.Join(base, "origin"))
			bare, linked := filepath.Join(base, name), filepath.Join(base, "linked")
			sh(t, base, "clone", "-q", "--bare", "--", "origin", "./"+name)
			sh(t, bare, "worktree", "add", "-q", "-b", "l", linked)
			for dir, toplevel := range map[string]string{bare: "", filepath.Join(bare, "refs"): "", linked: linked} {
				got, err := g.Discover(t.Context(), dir)
				check(t, err)
				if diff := cmp.Diff(agency.Repo{Root: bare, CommonDir: bare, Toplevel: toplevel}, got); diff != "" {
					t.Errorf("%q (-want +got):\n%s", dir, diff)
				}
			}
		})
	}
}

func TestDiscoverSubmodule(t *testing.T) {
	t.Parallel()
	g, base := newGit(), tempDir(t)
	newRepo(t, filepath.Join(base, "library"))
	newRepo(t, filepath.Join(base, "super"))
	sh(t, filepath.Join(base, "super"), "submodule", "add", "-q", filepath.Join(base, "library"), "lib")
	module, linked := filepath.Join(base, "super", "lib"), filepath.Join(base, "linked")
	sh(t, module, "worktree", "add", "-q", "-b", "l", linked)
	for _, dir := range []string{module, linked} {
		got, err := g.Discover(t.Context(), dir)
		check(t, err)
		want := agency.Repo{Root: module, CommonDir: filepath.Join(base, "super", ".git", "modules", "lib"), Toplevel: dir}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", dir, diff)
		}
	}
}

// Git does not know the main worktree of such a repository; Root is still the same from everywhere.
func TestDiscoverSeparateGitDir(t *testing.T) {
	t.Parallel()
	g, base := newGit(), tempDir(t)
	store, main, linked := filepath.Join(base, "store"), filepath.Join(base, "main"), filepath.Join(base, "linked")
	sh(t, base, "init", "-q", "--separate-git-dir", store, main)
	sh(t, main, "commit", "-q", "--allow-empty", "-m", "x")
	sh(t, main, "worktree", "add", "-q", linked)
	for _, dir := range []string{main, linked} {
		got, err := g.Discover(t.Context(), dir)
		check(t, err)
		if diff := cmp.Diff(agency.Repo{Root: store, CommonDir: store, Toplevel: dir}, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", dir, diff)
		}
	}
}

func TestDiscoverErrors(t *testing.T) {
	t.Parallel()
	g, dir := newGit(), tempDir(t)
	write(t, filepath.Join(dir, "file"), "")
	broken := filepath.Join(dir, "broken")
	newRepo(t, broken)
	write(t, filepath.Join(broken, ".git", "config"), "[core\x1b[31m\n")
	for path, want := range map[string]agency.Code{
		filepath.Join(dir, "missing"):   agency.CodeInvalidPath,
		filepath.Join(dir, "file"):      agency.CodeInvalidPath,
		filepath.Join(dir, "file", "x"): agency.CodeInvalidPath,
		filepath.Join(dir, "nul\x00"):   agency.CodeInvalidPath,
		"":                              agency.CodeInvalidPath,
		dir:                             agency.CodeNotGitRepo,
		broken:                          agency.CodeNotGitRepo,
	} {
		_, err := g.Discover(t.Context(), path)
		wantCode(t, err, want)
		if e := agency.AsError(err); !strings.Contains(e.Message, strings.TrimSuffix(path, "\x00")) {
			t.Errorf("%q is not named in %q", path, e.Message)
		}
	}
}
