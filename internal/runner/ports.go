package runner

import (
	"context"
	"fmt"
	"net"
	"syscall"

	"agency"
)

// openPorts opens a port of the machine for each port of a container, on the loopback, and gives the
// listeners to the runner to start, from its fifth file on. done closes them here. opened is nil when the
// container has no ports.
func openPorts(ports []int, attr *syscall.ProcAttr) (opened *agency.Ports, done func(), err error) {
	var closers []func() error
	done = func() {
		for _, c := range closers {
			_ = c()
		}
	}
	if len(ports) == 0 {
		return nil, done, nil
	}
	if len(attr.Files) == 3 {
		attr.Files = append(attr.Files, ^uintptr(0)) // the network has no proxy
	}
	opened = agency.NewPorts(ports)
	for i := range opened.Forwarded {
		l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp4", "127.0.0.1:0")
		if err != nil {
			return nil, done, fmt.Errorf("open a port of the machine: %w", err)
		}
		closers = append(closers, l.Close)
		tcp, ok := l.(*net.TCPListener)
		if !ok {
			return nil, done, fmt.Errorf("open a port of the machine: %s is not TCP", l.Addr())
		}
		f, err := tcp.File()
		if err != nil {
			return nil, done, fmt.Errorf("open a port of the machine: %w", err)
		}
		closers = append(closers, f.Close)
		attr.Files = append(attr.Files, f.Fd())
		opened.Forwarded[i].Address = l.Addr().String()
	}
	return opened, done, nil
}
