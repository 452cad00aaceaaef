package sandbox

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A launch without open files cannot look for secrets in a folder, so it fails and makes no sandbox.
// It is not parallel: the limit is that of all tests.
func TestHiddenWithoutOpenFiles(t *testing.T) {
	if mounts, err := hidden(); err != nil {
		t.Fatalf("with open files: %v, %v", mounts, err)
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	mounts, err := hidden()
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(err, unix.EMFILE) || !strings.Contains(err.Error(), etc) {
		t.Errorf("got %v, %v", mounts, err)
	}
}
