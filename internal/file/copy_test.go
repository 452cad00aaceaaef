package file_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"agency/internal/file"
)

func TestCopyBeneath(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), t.TempDir()
	put := func(rel, text string, perm fs.FileMode) {
		t.Helper()
		path := filepath.Join(from, rel)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, perm)); err != nil {
			t.Fatal(err)
		}
	}
	put(".env", "SECRET=1\n", 0o640)
	put("local/deep/run.sh", "#!/bin/sh\n", 0o755)
	put("local/plain", "x", 0o600)
	if err := errors.Join(
		os.Symlink("/etc/passwd", filepath.Join(from, "local/passwd")),
		os.Symlink("/etc", filepath.Join(from, "etc")),
		syscall.Mkfifo(filepath.Join(from, "local/pipe"), 0o600),
		os.Symlink(t.TempDir(), filepath.Join(to, "elsewhere")),
		os.Mkdir(filepath.Join(from, "elsewhere"), 0o755),
	); err != nil {
		t.Fatal(err)
	}
	put("elsewhere/file", "x", 0o600)

	skipped, err := file.CopyBeneath(t.Context(), from, to, ".env", 1<<20)
	if err != nil || len(skipped) != 0 {
		t.Fatalf("got %q, %v", skipped, err)
	}
	if info, err := os.Stat(filepath.Join(to, ".env")); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("got %v, %v", info, err)
	}
	if _, err := file.CopyBeneath(t.Context(), from, to, ".env", 1<<20); !errors.Is(err, fs.ErrExist) {
		t.Errorf("the second time: got %v", err)
	}
	skipped, err = file.CopyBeneath(t.Context(), from, to, "local", 1<<20)
	slices.Sort(skipped)
	if err != nil || !slices.Equal(skipped, []string{"local/passwd", "local/pipe"}) {
		t.Errorf("got %q, %v", skipped, err)
	}
	if data, err := os.ReadFile(filepath.Join(to, "local/deep/run.sh")); err != nil || string(data) != "#!/bin/sh\n" {
		t.Errorf("got %q, %v", data, err)
	}
	refusesToCopy(t, from, to)
}

// refusesToCopy checks that nothing is copied that is missing, outside, a link, too large or no
// longer asked for.
func refusesToCopy(t *testing.T, from, to string) {
	t.Helper()
	for rel, want := range map[string]error{
		"nothing":    fs.ErrNotExist,
		"../outside": fs.ErrInvalid,
		"etc/passwd": file.ErrNotRegular,
		// In the other tree it is a link that leads out.
		"elsewhere/file": file.ErrNotRegular,
	} {
		if _, err := file.CopyBeneath(t.Context(), from, to, rel, 1<<20); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", rel, err, want)
		}
	}
	if _, err := file.CopyBeneath(t.Context(), from, t.TempDir(), "local", 5); !errors.Is(err, file.ErrTooLarge) {
		t.Errorf("over the limit: got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := file.CopyBeneath(ctx, from, t.TempDir(), "local", 1<<20); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
}

func TestLinksBeneath(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := os.Symlink(t.TempDir(), filepath.Join(root, "out")); err != nil {
		t.Fatal(err)
	}
	wants := func(rel, target string) {
		t.Helper()
		if got, err := os.Readlink(filepath.Join(root, rel)); err != nil || got != target {
			t.Errorf("%s: got %q, %v", rel, got, err)
		}
	}
	if err := file.LinkBeneath(root, "a/b", "/target"); err != nil {
		t.Fatal(err)
	}
	wants("a/b", "/target")
	if err := file.LinkBeneath(root, "a/b", "/other"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("twice: got %v", err)
	}
	if err := file.ReplaceLinkBeneath(root, "a/b", "/other"); err != nil {
		t.Error(err)
	}
	wants("a/b", "/other")
	for _, err := range []error{file.LinkBeneath(root, "out/x", "/t"), file.ReplaceLinkBeneath(root, "out/x", "/t")} {
		if !errors.Is(err, file.ErrNotRegular) {
			t.Errorf("through a link: got %v", err)
		}
	}
	if entries, err := os.ReadDir(filepath.Join(root, "a")); err != nil || len(entries) != 1 {
		t.Errorf("left: %v, %v", entries, err)
	}
	if info, err := file.StatBeneath(root, "a/b"); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("got %v, %v", info, err)
	}
	if _, err := file.StatBeneath(root, "out/x"); !errors.Is(err, file.ErrNotRegular) {
		t.Errorf("got %v", err)
	}
}
