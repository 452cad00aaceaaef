package file_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"agency/internal/file"
)

func TestBeneath(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, rel := range []string{"top", "a/b/c", "./x/../y", "with space/new\nline/quote\"'/🚦"} {
		for _, content := range []string{"one", "two"} {
			check(t, file.WriteBeneath(root, rel, []byte(content), 0o666))
			got, err := file.ReadBeneath(root, rel, 100)
			if err != nil || string(got) != content {
				t.Errorf("%q: read %q, %v", rel, got, err)
			}
		}
		info, err := os.Stat(filepath.Join(root, rel))
		check(t, err)
		if info.Mode().Perm() != 0o666 { // whatever the umask
			t.Errorf("%q: mode is %o", rel, info.Mode().Perm())
		}
	}
	wantNames(t, filepath.Join(root, "a", "b"), "c")
}

// Where a file has the name already, nothing is written, however much there is to write.
func TestCreateBeneathLooksFirst(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	mustWrite(t, filepath.Join(root, "f"), "old")
	before := time.Unix(1, 0)
	check(t, os.Chtimes(root, before, before))
	if err := file.CreateBeneath(root, "f", []byte("new"), 0o644); !errors.Is(err, fs.ErrExist) {
		t.Errorf("error is %v, want fs.ErrExist", err)
	}
	info, err := os.Stat(root)
	check(t, err)
	if !info.ModTime().Equal(before) {
		t.Error("the folder has changed")
	}
}

// No name and no link may lead out of the root, and none is followed inside it.
func TestBeneathStaysInside(t *testing.T) {
	t.Parallel()
	external := t.TempDir()
	mustWrite(t, filepath.Join(external, "f"), "secret")
	root := t.TempDir()
	check(t, os.Mkdir(filepath.Join(root, "real"), 0o755))
	mustWrite(t, filepath.Join(root, "real", "f"), "inside")
	mustLink(t, external, filepath.Join(root, "out"))
	mustLink(t, "real", filepath.Join(root, "in"))
	mustLink(t, filepath.Join(external, "missing"), filepath.Join(root, "dangling"))
	check(t, syscall.Mkfifo(filepath.Join(root, "pipe"), 0o600))

	for rel, want := range map[string]error{
		"":              fs.ErrInvalid,
		".":             fs.ErrInvalid,
		"..":            fs.ErrInvalid,
		"../x":          fs.ErrInvalid,
		"real/../../x":  fs.ErrInvalid,
		external + "/f": fs.ErrInvalid,
		"out/f":         file.ErrNotRegular,
		"out/deeper/f":  file.ErrNotRegular,
		"in/f":          file.ErrNotRegular,
		"dangling/f":    file.ErrNotRegular,
		"pipe/f":        syscall.ENOTDIR,
		"real/f/f":      syscall.ENOTDIR,
	} {
		if _, err := soon(t, func() ([]byte, error) { return file.ReadBeneath(root, rel, 100) }); !errors.Is(err, want) {
			t.Errorf("ReadBeneath(%q): %v, want %v", rel, err, want)
		}
		if err := file.WriteBeneath(root, rel, []byte("x"), 0o644); !errors.Is(err, want) {
			t.Errorf("WriteBeneath(%q): %v, want %v", rel, err, want)
		}
		if err := file.CreateBeneath(root, rel, []byte("x"), 0o644); !errors.Is(err, want) {
			t.Errorf("CreateBeneath(%q): %v, want %v", rel, err, want)
		}
		if _, err := file.AppendBeneath(root, rel, 0o644); !errors.Is(err, want) {
			t.Errorf("AppendBeneath(%q): %v, want %v", rel, err, want)
		}
		if err := file.RenameBeneath(root, rel, "g"); !errors.Is(err, want) {
			t.Errorf("RenameBeneath(%q): %v, want %v", rel, err, want)
		}
	}
	wantNames(t, external, "f")
	if got := readFile(t, filepath.Join(root, "real", "f")); got != "inside" {
		t.Errorf("a link was followed: %q", got)
	}

	// The last component, when it is a link, is replaced.
	check(t, file.WriteBeneath(root, "dangling", []byte("mine"), 0o644))
	wantNames(t, external, "f")
	if got := readFile(t, filepath.Join(root, "dangling")); got != "mine" {
		t.Errorf("content is %q", got)
	}
}

func TestAppendBeneath(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, line := range []string{"one\n", "two\n"} {
		f, err := file.AppendBeneath(root, "a/log", 0o640)
		check(t, err)
		_, err = f.WriteString(line)
		check(t, errors.Join(err, f.Close()))
	}
	if got := readFile(t, filepath.Join(root, "a", "log")); got != "one\ntwo\n" {
		t.Errorf("content is %q", got)
	}
	external := t.TempDir()
	mustLink(t, filepath.Join(external, "f"), filepath.Join(root, "link"))
	check(t, syscall.Mkfifo(filepath.Join(root, "pipe"), 0o600))
	for _, rel := range []string{"link", "pipe", "a"} {
		_, err := soon(t, func() ([]byte, error) { _, err := file.AppendBeneath(root, rel, 0o644); return nil, err })
		if !errors.Is(err, file.ErrNotRegular) {
			t.Errorf("%s: %v", rel, err)
		}
	}
	wantNames(t, external)
	check(t, file.RenameBeneath(root, "a/log", "old"))
	wantNames(t, filepath.Join(root, "a"), "old")
}

// An attacker who repeatedly exchanges a folder for a link never gets a byte written or read
// outside.
func TestBeneathRace(t *testing.T) {
	t.Parallel()
	external, root := t.TempDir(), t.TempDir()
	mustWrite(t, filepath.Join(external, "secret"), "secret")
	dir := filepath.Join(root, "d")
	mustLink(t, external, filepath.Join(root, "link"))
	check(t, os.Mkdir(filepath.Join(root, "folder"), 0o755))
	mustWrite(t, filepath.Join(root, "folder", "secret"), "harmless")

	var stop atomic.Bool
	var attacker sync.WaitGroup
	attacker.Go(func() {
		for !stop.Load() {
			for _, what := range []string{"folder", "link"} {
				_ = os.Rename(filepath.Join(root, what), dir)
				_ = os.Rename(dir, filepath.Join(root, what))
			}
		}
	})
	for range 2000 {
		if got, err := file.ReadBeneath(root, "d/secret", 100); err == nil && string(got) != "harmless" {
			t.Errorf("read %q", got)
		}
		_ = file.WriteBeneath(root, "d/new", []byte("x"), 0o644)
		if f, err := file.AppendBeneath(root, "d/grown", 0o644); err == nil {
			_ = f.Close()
		}
	}
	stop.Store(true)
	attacker.Wait()
	wantNames(t, external, "secret")
}

func TestCreateBeneathHasOneWinner(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	errs := make([]error, 20)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = file.CreateBeneath(root, "agency/id", fmt.Appendf(nil, "%d", i), 0o644) })
	}
	wg.Wait()
	winner := -1
	for i, err := range errs {
		switch {
		case err == nil && winner >= 0:
			t.Errorf("both %d and %d won", winner, i)
		case err == nil:
			winner = i
		case !errors.Is(err, fs.ErrExist):
			t.Errorf("error is %v, want fs.ErrExist", err)
		}
	}
	if got := readFile(t, filepath.Join(root, "agency", "id")); got != fmt.Sprint(winner) {
		t.Errorf("content is of %s, the winner is %d", got, winner)
	}
	wantNames(t, filepath.Join(root, "agency"), "id")
}

// For any name, a write ends in an error or in a file below the root that reads back.
func FuzzBeneath(f *testing.F) {
	for _, rel := range []string{"a", "a/b", "../a", "/a", "a//b/", "a/./b", "a/../..", "a\x00b", "🚦/\n", strings.Repeat("n", 300)} {
		f.Add(rel)
	}
	f.Fuzz(func(t *testing.T, rel string) {
		parent := t.TempDir()
		root := filepath.Join(parent, "root")
		check(t, os.Mkdir(root, 0o755))
		err := file.WriteBeneath(root, rel, []byte("x"), 0o644)
		if err == nil {
			if got, err := file.ReadBeneath(root, rel, 1); err != nil || string(got) != "x" {
				t.Errorf("%q: written, but read %q, %v", rel, got, err)
			}
		}
		wantNames(t, parent, "root")
	})
}
