package runner

import (
	"context"
	"net"
	"time"
)

// Serving are the processes that all runs need, whichever agent happened to start them: the daemon
// and the tmux server. They, and what they started, are not part of a run. They are identified by
// what the kernel reports; their environment does not count.
type Serving struct {
	Lock string // the file on which the daemon holds a kernel lock
	Tmux string // the socket of the tmux server; empty is unknown
}

// dialServer bounds the connection to a tmux server's socket.
const dialServer = time.Second

// pids returns the pids of the daemon and of the tmux server; 0 where there is none.
func (s Serving) pids() (daemon, server int) { return lockHolder(s.Lock), listenerOf(s.Tmux) }

// listenerOf returns the pid of the process that listens on a socket; 0 when there is none.
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
