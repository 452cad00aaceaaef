package clitest

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

// OwnSocket returns the path of a socket of this user, like that of a tmux server.
func OwnSocket(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "agc")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "tmux")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return path
}
