package git_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"agency"
	"agency/internal/git"
)

func id(n int64) string { return fmt.Sprintf("00000000-0000-4000-8000-%012x", n) }

// However many processes ask at once, a repository gets one identity, and keeps it.
func TestEnsureID(t *testing.T) {
	t.Parallel()
	_, repo := setup(t)
	var made atomic.Int64
	got := make([]string, 16)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() {
			var err error
			if got[i], err = newGit().EnsureID(repo, func() string { return id(made.Add(1)) }); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, g := range got {
		if g != got[0] || !git.UUID(g) {
			t.Fatalf("identities differ: %q", got)
		}
	}
	found, err := newGit().Discover(t.Context(), repo.Root)
	check(t, err)
	if found.Fingerprint != got[0] {
		t.Errorf("Discover says %q, want %q", found.Fingerprint, got[0])
	}

	check(t, newGit().ReplaceID(repo, id(99)))
	if now, err := newGit().EnsureID(repo, nil); err != nil || now != id(99) {
		t.Errorf("after ReplaceID: %q, %v", now, err)
	}
	entries, err := os.ReadDir(filepath.Join(repo.CommonDir, "agency"))
	check(t, err)
	if len(entries) != 1 {
		t.Errorf("temporary files are left: %v", entries)
	}
}

func TestDamagedID(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(t *testing.T, path string){
		"empty":      func(t *testing.T, path string) { write(t, path, "") },
		"upper case": func(t *testing.T, path string) { write(t, path, strings.ToUpper(id(0xabc))) },
		"path":       func(t *testing.T, path string) { write(t, path, "../../../../etc") },
		"two lines":  func(t *testing.T, path string) { write(t, path, id(1)+"\n\n") },
		"huge":       func(t *testing.T, path string) { write(t, path, ""); check(t, os.Truncate(path, 100<<20)) },
		"pipe": func(t *testing.T, path string) {
			check(t, os.MkdirAll(filepath.Dir(path), 0o755))
			check(t, syscall.Mkfifo(path, 0o644))
		},
		"link": func(t *testing.T, path string) { write(t, path+"2", id(1)); check(t, os.Symlink(path+"2", path)) },
		"folder link": func(t *testing.T, path string) {
			external := t.TempDir()
			write(t, filepath.Join(external, "id"), id(1))
			check(t, os.Symlink(external, filepath.Dir(path)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, repo := setup(t)
			damage(t, filepath.Join(repo.CommonDir, "agency", "id"))
			_, err := g.EnsureID(repo, func() string { return id(7) })
			wantCode(t, err, agency.CodeInvalidPath)
			_, err = g.Discover(t.Context(), repo.Root)
			wantCode(t, err, agency.CodeInvalidPath)
		})
	}
}

func TestExclude(t *testing.T) {
	t.Parallel()
	for old, want := range map[string]string{
		"":                         "/.agency/\n",
		"# no newline":             "# no newline\n/.agency/\n",
		"a\r\nb\r\n":               "a\r\nb\r\n/.agency/\n",
		"\xff\x00odd\n\n":          "\xff\x00odd\n\n/.agency/\n",
		"x\n/.agency/\ny":          "x\n/.agency/\ny",
		"/.agency/":                "/.agency/",
		"/.agency/\r\n":            "/.agency/\r\n",
		"#/.agency/\n/.agency/x\n": "#/.agency/\n/.agency/x\n/.agency/\n",
	} {
		g, repo := setup(t)
		path := filepath.Join(repo.CommonDir, "info", "exclude")
		write(t, path, old)
		check(t, os.Chmod(path, 0o600))
		for range 2 {
			check(t, g.Exclude(repo, "/.agency/"))
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%q became %q, want %q (%v)", old, got, want, err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode is %v, %v", info.Mode(), err)
		}
	}
}

func TestExcludeMissingAndLinked(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	info := filepath.Join(repo.CommonDir, "info")
	check(t, os.RemoveAll(info))
	check(t, g.Exclude(repo, "/.agency/"))
	write(t, filepath.Join(repo.Root, ".agency", "x"), "")
	if got := sh(t, repo.Root, "status", "--porcelain"); got != "" {
		t.Errorf("git does not ignore it: %s", got)
	}

	external := filepath.Join(t.TempDir(), "exclude")
	write(t, external, "theirs\n")
	check(t, os.Remove(filepath.Join(info, "exclude")))
	check(t, os.Symlink(external, filepath.Join(info, "exclude")))
	wantCode(t, g.Exclude(repo, "/.agency/"), agency.CodePermissionDenied)
	if got, err := os.ReadFile(external); err != nil || string(got) != "theirs\n" {
		t.Errorf("the link was followed: %q, %v", got, err)
	}
}
