package socket_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"

	"agency"
	"agency/internal/socket"
)

// short returns a folder below which a socket's path is not too long.
func short(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "ags")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func listen(t *testing.T, path string) net.Listener {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestDial(t *testing.T) {
	t.Parallel()
	path := filepath.Join(short(t), "a.sock")
	l := listen(t, path)
	conn, err := socket.Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = accepted.Close() }()
	for name, end := range map[string]net.Conn{"client": conn, "server": accepted} {
		if peer, err := socket.PeerOf(end); err != nil || peer.UID != os.Getuid() || peer.PID != os.Getpid() {
			t.Errorf("the %s sees %+v, %v", name, peer, err)
		}
	}
}

// A missing or dead socket is the system's own error, so that a client can start a daemon.
func TestDialNothing(t *testing.T) {
	t.Parallel()
	dir := short(t)
	if _, err := socket.Dial(t.Context(), filepath.Join(dir, "none", "a.sock")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	path := filepath.Join(dir, "dead.sock")
	l := listen(t, path).(*net.UnixListener)
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := socket.Dial(t.Context(), path); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dead: %v", err)
	}
}

// A process replaces the socket that a killed one left, and leaves its own when it closes the listener.
func TestListenReplacesDeadSocket(t *testing.T) {
	t.Parallel()
	dir := short(t)
	path := filepath.Join(dir, "a.sock")
	for range 2 {
		l, err := socket.Listen(dir, "a.sock")
		if err != nil {
			t.Fatal(err)
		}
		conn, err := socket.Dial(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Close(), l.Close()
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
	}
}

// Where other users can write, a socket can be replaced between two checks.
func TestDialInOpenFolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(short(t), "open", "a.sock")
	listen(t, path)
	for _, mode := range []fs.FileMode{0o770, 0o777, 0o777 | fs.ModeSticky} {
		if err := os.Chmod(filepath.Dir(path), mode); err != nil {
			t.Fatal(err)
		}
		if _, err := socket.Dial(t.Context(), path); !agency.IsCode(err, agency.CodeSocketPathInvalid) {
			t.Errorf("%s: got %v", mode, err)
		}
	}
}

// A listener accepts no more connections than there are slots, whatever else accepts with them.
func TestSlots(t *testing.T) {
	t.Parallel()
	dir, slots := short(t), socket.NewSlots(1)
	accept := func(name string) net.Conn {
		t.Helper()
		path := filepath.Join(dir, name)
		l := slots.Listener(listen(t, path))
		client, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	first := accept("first")
	var closed atomic.Bool
	go func() {
		runtime.Gosched()
		closed.Store(true)
		_ = first.Close()
	}()
	second := accept("second")
	if !closed.Load() {
		t.Error("two connections have the one slot")
	}
	_ = second.Close()
}
