package sandbox

import (
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// A port of a container outlives a moment without open files, and ends with its listener.
func TestForwardsAfterExhaustion(t *testing.T) {
	t.Parallel()
	var ends [2]*net.UnixConn
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, fd := range pair {
		file := os.NewFile(uintptr(fd), "link")
		conn, err := net.FileConn(file)
		_ = file.Close()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		ends[i] = conn.(*net.UnixConn)
	}
	outside, client := net.Pipe()
	defer func() { _, _ = outside.Close(), client.Close() }()
	l := &exhausted{conns: []net.Conn{nil, outside}}
	f := newForwards(ends[0])
	f.serve(l, 8080)
	var o order
	if len(f.waiting) != 1 || !l.closed || len(f.slots) != 1 {
		t.Fatalf("%d connections wait, the listener is closed: %t, slots: %d", len(f.waiting), l.closed, len(f.slots))
	}
	if _, err := receive(ends[1], &o); err != nil || o.Port != 8080 || o.Of != 1 {
		t.Errorf("got %+v, %v", o, err)
	}
}

// exhausted accepts connections, then it is closed. In place of a nil there are no open files.
type exhausted struct {
	net.Listener

	conns  []net.Conn
	closed bool
}

func (l *exhausted) Accept() (net.Conn, error) {
	if len(l.conns) == 0 {
		return nil, net.ErrClosed
	}
	conn := l.conns[0]
	l.conns = l.conns[1:]
	if conn == nil {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", unix.EMFILE)}
	}
	return conn, nil
}

func (l *exhausted) Close() error { l.closed = true; return nil }
