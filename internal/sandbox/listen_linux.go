package sandbox

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// listen opens the places, and gives the listeners away: ports on the loopback of this network, of
// which the first is the proxy's, and sockets. Nothing of them stays open here.
func listen(places string) error {
	defer func() { _ = unix.Close(ListenerFile) }()
	var fds []int
	for place := range strings.SplitSeq(places, ",") {
		f, err := listenAt(place)
		if err != nil {
			return fmt.Errorf("listen on %s: %w", place, err)
		}
		defer func() { _ = f.Close() }()
		fds = append(fds, int(f.Fd()))
	}
	if err := unix.Sendmsg(ListenerFile, []byte{byte(len(fds))}, unix.UnixRights(fds...), nil, 0); err != nil {
		return fmt.Errorf("pass the listeners: %w", err)
	}
	return nil
}

// listenAt returns the listener for a port, or for a socket, whose folder it makes.
func listenAt(place string) (*os.File, error) {
	network, address := "tcp4", "127.0.0.1:"+place
	if filepath.IsAbs(place) {
		network, address = "unix", place
		if err := os.MkdirAll(filepath.Dir(place), 0o700); err != nil {
			return nil, err
		}
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), network, address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = l.Close() }()
	switch l := l.(type) {
	case *net.TCPListener:
		return l.File()
	case *net.UnixListener:
		l.SetUnlinkOnClose(false)
		return l.File()
	default:
		return nil, fmt.Errorf("%T has no file", l)
	}
}
