package runner

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"agency/internal/socket"
)

// A sandbox passes the listeners of its network through a socket, as open files in one message.

// mostListeners is how many listeners a sandbox may pass.
const mostListeners = 64

// passingPair returns the two ends of a socket by which a sandbox passes its listeners.
func passingPair() (own, theirs *os.File, err error) {
	if own, theirs, err = socket.Pair(); err != nil {
		return nil, nil, fmt.Errorf("make a socket for the proxy: %w", err)
	}
	return own, theirs, nil
}

// receiveListeners returns the listeners that are passed through a socket. It closes the socket.
func receiveListeners(own *os.File) ([]net.Listener, error) {
	files, err := receiveFiles(own)
	if err != nil {
		return nil, err
	}
	return listenersOf(files)
}

// receiveFiles returns the open files that are passed through a socket, and closes the socket. The error is
// io.EOF when the other end closes without passing any.
func receiveFiles(own *os.File) ([]int, error) {
	conn, err := net.FileConn(own)
	_ = own.Close()
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	return filesFrom(conn)
}

// filesFrom is receiveFiles for a connection, which stays open.
func filesFrom(conn net.Conn) ([]int, error) {
	passing, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.New("it is not a unix socket")
	}
	rights := make([]byte, unix.CmsgSpace(4*mostListeners))
	_, n, _, _, err := passing.ReadMsgUnix(make([]byte, 1), rights)
	if err != nil {
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil {
		return nil, err
	}
	var files []int
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return nil, err
		}
		files = append(files, fds...)
	}
	if len(files) == 0 {
		return nil, errors.New("it passed no listener")
	}
	return files, nil
}

// listenersOf returns the listeners that these open files are. It closes the files.
func listenersOf(files []int) ([]net.Listener, error) {
	var listeners []net.Listener
	for _, fd := range files {
		f := os.NewFile(uintptr(fd), "listener")
		l, err := net.FileListener(f)
		_ = f.Close()
		if err != nil {
			return nil, err
		}
		listeners = append(listeners, l)
	}
	return listeners, nil
}
