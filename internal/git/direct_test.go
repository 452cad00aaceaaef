package git_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/git"
	"agency/internal/trace"
)

// addTraced makes a worktree and returns the names of the gits that it took.
func addTraced(t *testing.T, g *git.Git, root, path string) []string {
	t.Helper()
	repo, err := g.Discover(t.Context(), root)
	check(t, err)
	steps := trace.New("test")
	check(t, g.AddWorktree(trace.With(t.Context(), steps), repo, path, "agency/x", sh(t, root, "rev-parse", "HEAD"), agency.OwnPrograms))
	names := []string{}
	for _, span := range steps.Spans() {
		names = append(names, span.Name)
	}
	return names
}

// A worktree and its branch are made by one git, and are as git alone makes them.
func TestAddWorktreeByOneGit(t *testing.T) {
	t.Parallel()
	g := newGit()
	repo, commits := standbyRepo(t, g)
	by, ours := filepath.Join(tempDir(t), "byhand"), filepath.Join(tempDir(t), "r_1")
	sh(t, repo.Root, "worktree", "add", "-q", "-b", "byhand", by, commits[1])
	_, err := g.CheckoutKey(t.Context(), repo) // the configuration is asked for once
	check(t, err)
	if diff := cmp.Diff([]string{"git checkout --quiet"}, addTraced(t, g, repo.Root, ours)); diff != "" {
		t.Errorf("the processes of git (-want +got):\n%s", diff)
	}
	wantWorktree(t, g, repo, ours, "agency/x", true)
	if diff := cmp.Diff(content(t, by), content(t, ours)); diff != "" {
		t.Errorf("it differs from the worktree of git:\n%s", diff)
	}
	for _, name := range []string{"commondir", "gitdir", "HEAD"} {
		want, err := os.ReadFile(filepath.Join(repo.CommonDir, "worktrees", "byhand", name))
		check(t, err)
		got, err := os.ReadFile(filepath.Join(repo.CommonDir, "worktrees", "r_1", name))
		check(t, err)
		if text := strings.NewReplacer(by, ours, "heads/byhand", "heads/agency/x").Replace(string(want)); string(got) != text {
			t.Errorf("%s is %q, git writes %q", name, got, text)
		}
	}
	if list := sh(t, repo.Root, "worktree", "list", "--porcelain"); strings.Contains(list, "locked") || strings.Contains(list, "prunable") {
		t.Errorf("git lists it as\n%s", list)
	}
}

// Where more than files has to come out, or git keeps more than the usual files, git makes it all.
func TestAddWorktreeByGitAlone(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(t *testing.T, repo agency.Repo){
		"a hook":             func(t *testing.T, repo agency.Repo) { hook(t, repo, "post-checkout", "") },
		"a sparse checkout":  func(t *testing.T, repo agency.Repo) { sh(t, repo.Root, "sparse-checkout", "set", "sub") },
		"shared permissions": func(t *testing.T, repo agency.Repo) { sh(t, repo.Root, "config", "core.sharedRepository", "group") },
		"relative paths":     func(t *testing.T, repo agency.Repo) { sh(t, repo.Root, "config", "worktree.useRelativePaths", "true") },
		"a name that is taken": func(t *testing.T, repo agency.Repo) {
			sh(t, repo.Root, "worktree", "add", "-q", "--detach", filepath.Join(tempDir(t), "r_1"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, repo := setup(t)
			prepare(t, repo)
			path := filepath.Join(tempDir(t), "r_1")
			names := addTraced(t, g, repo.Root, path)
			if !strings.Contains(strings.Join(names, "\n"), "git worktree add") {
				t.Errorf("made by %q", names)
			}
			wantWorktree(t, g, repo, path, "agency/x", true)
		})
	}
}

// When git cannot make the branch, nothing is left of the worktree, and the branch that is there
// stays.
func TestAddWorktreeByOneGitFails(t *testing.T) {
	t.Parallel()
	for name, taken := range map[string]string{"the branch exists": "agency/x", "a branch is in the way": "agency"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, repo := setup(t)
			sh(t, repo.Root, "branch", taken)
			path := filepath.Join(tempDir(t), "r_1")
			if err := g.AddWorktree(t.Context(), repo, path, "agency/x", sh(t, repo.Root, "rev-parse", "HEAD"), agency.OwnPrograms); err == nil {
				t.Error("it was made")
			}
			sh(t, repo.Root, "branch", "-D", taken)
			wantNothingLeft(t, repo, path, "agency/x")
		})
	}
}

// Agency was killed while it wrote the files for git, one after the other.
func TestWorktreeCutOffBeforeGit(t *testing.T) {
	t.Parallel()
	for name, written := range map[string][]string{
		"nothing":        nil,
		"an empty lock":  {"locked", ""},
		"the lock":       {"locked", "initializing\n"},
		"all but gitdir": {"locked", "initializing\n", "commondir", "../..\n", "HEAD", strings.Repeat("1", 40) + "\n", "gitdir", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, repo := setup(t)
			path := filepath.Join(tempDir(t), "r_1")
			check(t, os.Mkdir(path, 0o700))
			entry := filepath.Join(repo.CommonDir, "worktrees", "r_1")
			check(t, os.MkdirAll(entry, 0o700))
			for i := 0; i < len(written); i += 2 {
				write(t, filepath.Join(entry, written[i]), written[i+1])
			}
			wantWorktree(t, g, repo, path, "b", false)
			check(t, g.RemoveWorktree(t.Context(), repo, path))
			wantNothingLeft(t, repo, path, "b")
		})
	}
}
