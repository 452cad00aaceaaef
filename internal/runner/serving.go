package runner

import (
	"context"
	"net"
	"time"
)

// Serving are the processes that every run needs, whichever agent happened to be the first to need them: the daemon, and the
// tmux server. They are no part of a run, nor is what they started. They are known by what the kernel says of them; what
// is in their environment counts for nothing.
type Serving struct {
	Lock string // the file whose kernel lock the daemon holds
	Tmux string // the socket of the tmux server; empty is not known
}

// dialServer bounds the question to a tmux server's socket.
const dialServer = time.Second

// pids are the daemon and the tmux server; 0 where there is none.
func (s Serving) pids() (daemon, server int) { return lockHolder(s.Lock), listenerOf(s.Tmux) }

// listenerOf is the process that listens on a socket; 0 where there is none.
func listenerOf(socket string) int {
	if socket == "" {
		return 0
	}
	conn, err := (&net.Dialer{Timeout: dialServer}).DialContext(context.Background(), "unix", socket)
	if err != nil {
		return 0
	}
	defer func() { _ = conn.Close() }()
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0
	}
	pid := 0
	if err := raw.Control(func(fd uintptr) { pid = peerPID(int(fd)) }); err != nil {
		return 0
	}
	return pid
}
