package socket

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// Peer is the process at the other end of a unix connection, as the kernel reports it: the one that
// called connect or listen.
type Peer struct {
	UID int
	PID int // 0 when the kernel does not report it
}

// PeerOf asks the kernel for the other end of a unix connection.
func PeerOf(conn net.Conn) (Peer, error) {
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return Peer{}, errors.New("not a socket")
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return Peer{}, fmt.Errorf("look at connection: %w", err)
	}
	var peer Peer
	var credErr error
	if err := raw.Control(func(fd uintptr) { peer, credErr = credentials(int(fd)) }); err != nil {
		return Peer{}, fmt.Errorf("look at connection: %w", err)
	}
	if credErr != nil {
		return Peer{}, fmt.Errorf("read peer credentials: %w", credErr)
	}
	return peer, nil
}
