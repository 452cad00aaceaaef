package file_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"agency/internal/file"
)

// hostile is one thing that may be in the place of a file.
type hostile struct {
	make func(t *testing.T, path string)
	want error
}

func hostiles() map[string]hostile {
	return map[string]hostile{
		"missing": {func(*testing.T, string) {}, fs.ErrNotExist},
		"folder":  {func(t *testing.T, path string) { check(t, os.Mkdir(path, 0o755)) }, file.ErrNotRegular},
		"pipe":    {func(t *testing.T, path string) { check(t, syscall.Mkfifo(path, 0o600)) }, file.ErrNotRegular},
		"socket": {func(t *testing.T, path string) {
			t.Chdir(filepath.Dir(path)) // the path of a socket is short
			l, err := net.Listen("unix", filepath.Base(path))
			check(t, err)
			t.Cleanup(func() { _ = l.Close() })
		}, file.ErrNotRegular},
		"link to a file": {func(t *testing.T, path string) {
			mustWrite(t, path+".target", "secret")
			mustLink(t, path+".target", path)
		}, file.ErrNotRegular},
		"link to a device":  {func(t *testing.T, path string) { mustLink(t, "/dev/zero", path) }, file.ErrNotRegular},
		"link into nowhere": {func(t *testing.T, path string) { mustLink(t, path+".missing", path) }, file.ErrNotRegular},
		"link to itself":    {func(t *testing.T, path string) { mustLink(t, path, path) }, file.ErrNotRegular},
		"100 MB of holes":   {func(t *testing.T, path string) { mustWrite(t, path, ""); check(t, os.Truncate(path, 100<<20)) }, file.ErrTooLarge},
		"one byte too many": {func(t *testing.T, path string) { mustWrite(t, path, "12345678901") }, file.ErrTooLarge},
		"permission denied": {func(t *testing.T, path string) {
			if os.Geteuid() == 0 {
				t.Skip("root may read everything")
			}
			mustWrite(t, path, "x")
			check(t, os.Chmod(path, 0))
		}, fs.ErrPermission},
		"as large as allowed": {func(t *testing.T, path string) { mustWrite(t, path, "1234567890") }, nil},
		"empty":               {func(t *testing.T, path string) { mustWrite(t, path, "") }, nil},
	}
}

func TestReadHostile(t *testing.T) {
	for name, h := range hostiles() {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			check(t, os.MkdirAll(filepath.Join(root, "a", "b"), 0o755))
			path := filepath.Join(root, "a", "b", "file")
			h.make(t, path)
			for how, read := range map[string]func() ([]byte, error){
				"ReadRegular": func() ([]byte, error) { return file.ReadRegular(path, 10) },
				"ReadBeneath": func() ([]byte, error) { return file.ReadBeneath(root, "a/b/file", 10) },
			} {
				got, err := soon(t, read)
				if !errors.Is(err, h.want) {
					t.Errorf("%s: error is %v, want %v", how, err, h.want)
				}
				if h.want == nil && string(got) != readFile(t, path) {
					t.Errorf("%s: content is %q", how, got)
				}
			}
		})
	}
}

func TestReadDevice(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/dev/zero", "/dev/null", "/dev/tty"} {
		_, err := soon(t, func() ([]byte, error) { return file.ReadRegular(path, 10) })
		if err == nil {
			t.Errorf("%s was read", path)
		}
	}
}

// A file of unknown size is limited too: files of /proc have size 0.
func TestReadUnknownSize(t *testing.T) {
	t.Parallel()
	const path = "/proc/self/status"
	if _, err := os.Stat(path); err != nil {
		t.Skip("no /proc")
	}
	if got, err := file.ReadRegular(path, 1<<20); err != nil || len(got) == 0 {
		t.Errorf("read %d bytes, error %v", len(got), err)
	}
	if _, err := file.ReadRegular(path, 10); !errors.Is(err, file.ErrTooLarge) {
		t.Errorf("error is %v, want ErrTooLarge", err)
	}
}

// soon fails the test when a read blocks.
func soon(t *testing.T, read func() ([]byte, error)) (data []byte, err error) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		data, err = read()
	}()
	select {
	case <-done:
		return data, err
	case <-time.After(time.Minute):
		t.Fatal("the read blocks")
		return nil, nil
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
