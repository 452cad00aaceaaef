package sandbox

import (
	"context"
	"fmt"
	"net"
	"strings"

	"golang.org/x/sys/unix"
)

// listen listens on ports of the loopback of this network, the first of which is for the proxy. It passes the
// listeners to ListenerFile, and keeps none open.
func listen(ports string) error {
	defer func() { _ = unix.Close(ListenerFile) }()
	var fds []int
	for port := range strings.SplitSeq(ports, ",") {
		l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp4", "127.0.0.1:"+port)
		if err != nil {
			return fmt.Errorf("listen for the proxy: %w", err)
		}
		defer func() { _ = l.Close() }()
		tcp, ok := l.(*net.TCPListener)
		if !ok {
			return fmt.Errorf("listen for the proxy: %T is not a TCP listener", l)
		}
		f, err := tcp.File()
		if err != nil {
			return fmt.Errorf("listen for the proxy: %w", err)
		}
		defer func() { _ = f.Close() }()
		fds = append(fds, int(f.Fd()))
	}
	if err := unix.Sendmsg(ListenerFile, []byte{byte(len(fds))}, unix.UnixRights(fds...), nil, 0); err != nil {
		return fmt.Errorf("give the proxy its sockets: %w", err)
	}
	return nil
}
