package file_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"agency/internal/file"
)

func TestWrite(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(string, []byte) error{
		"atomic":  file.WriteAtomic,
		"durable": file.WriteDurable,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "état 🚦.json")
			for _, content := range []string{"first", "", "the second one"} {
				if err := write(path, []byte(content)); err != nil {
					t.Fatal(err)
				}
				if got := readFile(t, path); got != content {
					t.Errorf("content is %q, want %q", got, content)
				}
			}
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if got := info.Mode().Perm(); got != 0o600 {
				t.Errorf("mode is %o, want 600", got)
			}
			wantNames(t, dir, "état 🚦.json")
		})
	}
}

func TestWriteFailureLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "folder", "full"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := file.WriteAtomic(filepath.Join(dir, "folder"), []byte("x")); err == nil {
		t.Error("a folder was replaced by a file")
	}
	wantNames(t, dir, "folder")
	if err := file.WriteAtomic(filepath.Join(dir, "missing", "f"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error is %v, want fs.ErrNotExist", err)
	}
}

func TestWriteReplacesLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	mustWrite(t, target, "untouched")
	mustLink(t, target, link)
	if err := file.WriteAtomic(link, []byte("new")); err != nil {
		t.Fatal(err)
	}
	if got := readFile(t, target); got != "untouched" {
		t.Errorf("the link was followed: target holds %q", got)
	}
}

// Readers must see one whole version while writers replace the file.
func TestReadersSeeWholeVersions(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	version := func(b byte) []byte { return bytes.Repeat([]byte{b}, 100_000) }
	mustWrite(t, path, string(version('0')))
	done := make(chan error)
	for _, b := range []byte("ab") {
		go func() {
			var err error
			for range 50 {
				err = errors.Join(err, file.WriteAtomic(path, version(b)))
			}
			done <- err
		}()
	}
	for writers := 2; writers > 0; {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			writers--
		default:
			got, err := file.ReadRegular(path, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != 100_000 || !bytes.Equal(got, version(got[0])) {
				t.Fatalf("read a mixture of versions, %d bytes", len(got))
			}
		}
	}
	wantNames(t, filepath.Dir(path), "f")
}

func mustWrite(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func mustLink(t *testing.T, target, link string) {
	t.Helper()
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// wantNames checks that a folder holds these files and no temporary ones.
func wantNames(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]string, len(entries))
	for i, e := range entries {
		got[i] = e.Name()
	}
	if len(got) != len(want) {
		t.Fatalf("folder holds %q, want %q", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("folder holds %q, want %q", got, want)
		}
	}
}
