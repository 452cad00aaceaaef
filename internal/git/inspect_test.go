package git_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/git"
)

func TestInspect(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	root := repo.Root
	base := sh(t, root, "rev-parse", "HEAD")
	expect := func(want agency.GitFacts) {
		t.Helper()
		before := fingerprint(t, root)
		want.Head = sh(t, root, "rev-parse", "HEAD")
		got, err := g.Inspect(t.Context(), repo, root, base)
		check(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(before, fingerprint(t, root)); diff != "" {
			t.Errorf("Inspect changed something:\n%s", diff)
		}
	}
	expect(agency.GitFacts{Branch: "main"})
	check(t, os.Chtimes(filepath.Join(root, "a"), time0, time0)) // so that git would refresh its index
	expect(agency.GitFacts{Branch: "main"})
	for _, name := range oddNames {
		write(t, filepath.Join(root, "new "+name), "x")
		write(t, filepath.Join(root, "dir", name), "x")
	}
	expect(agency.GitFacts{Branch: "main", Dirty: true, Untracked: len(oddNames) + 1})
	sh(t, root, "mv", "sub/b", "sub/re\nnamed")
	write(t, filepath.Join(root, "a"), "changed")
	expect(agency.GitFacts{Branch: "main", Dirty: true, Changed: 2, Untracked: len(oddNames) + 1})
	sh(t, root, "add", "-A")
	sh(t, root, "commit", "-qm", "all")
	expect(agency.GitFacts{Branch: "main", Ahead: 1})
	sh(t, root, "pack-refs", "--all") // HEAD is then in no file of its own
	expect(agency.GitFacts{Branch: "main", Ahead: 1})
	sh(t, root, "checkout", "-q", "--detach", "HEAD~2")
	expect(agency.GitFacts{Behind: 1})
}

func TestInspectUnborn(t *testing.T) {
	t.Parallel()
	g, dir := newGit(), tempDir(t)
	sh(t, dir, "init", "-q", "-b", "main")
	repo := agency.Repo{Root: dir, CommonDir: filepath.Join(dir, ".git")}
	got, err := g.Inspect(t.Context(), repo, dir, strings.Repeat("0", 40))
	check(t, err)
	if diff := cmp.Diff(agency.GitFacts{Branch: "main"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzParseStatus(f *testing.F) {
	for _, s := range []string{
		"", "\x00", "# branch.oid (initial)\x00# branch.head main\x00", "1 .M N... 1 1 1 a a p\x00? new\nline\x00",
		"2 R. N... 1 1 1 a a R100 to\x00from\x00u UU x\x00", "2 R", "! ignored\x00", "? \x1b",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, out string) {
		facts, err := git.ParseStatus(out)
		if err == nil && facts.Changed+facts.Untracked > strings.Count(out, "\x00")+1 {
			t.Errorf("%q has more changes than lines: %+v", out, facts)
		}
	})
}

// Git treats a folder that it cannot read as empty. A worktree with such a folder does not count as
// clean.
func TestUnreadableFolder(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	const warning = "warning: could not open directory 'data/': Permission denied"
	check(t, g.Says(t.Context(), repo.Root, warning, false))
	check(t, g.Says(t.Context(), repo.Root, "warning: something else", true))
	err := g.Says(t.Context(), repo.Root, warning, true)
	if err == nil || !strings.Contains(err.Error(), "could not open directory 'data/'") {
		t.Errorf("got %v", err)
	}
}
