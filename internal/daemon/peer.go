package daemon

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// peerUID is the user at the other end of a unix connection, by the kernel's word.
func peerUID(conn net.Conn) (int, error) {
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return 0, errors.New("not a socket")
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("look at connection: %w", err)
	}
	var uid int
	var credErr error
	if err := raw.Control(func(fd uintptr) { uid, credErr = socketUID(int(fd)) }); err != nil {
		return 0, fmt.Errorf("look at connection: %w", err)
	}
	if credErr != nil {
		return 0, fmt.Errorf("read peer credentials: %w", credErr)
	}
	return uid, nil
}
