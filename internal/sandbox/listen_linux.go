package sandbox

import (
	"context"
	"fmt"
	"net"
	"strings"

	"golang.org/x/sys/unix"
)

// listen opens the ports, of which the first is the proxy's, on the loopback of this network, and
// gives the listeners away. Nothing of them stays open here.
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
