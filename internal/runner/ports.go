package runner

import (
	"context"
	"fmt"
	"net"
	"syscall"

	"agency"
)

// openPorts opens a port of the machine for each port of the runner's container, on the loopback, and
// gives the listeners to the runner to start, from its fifth file on. done closes them here.
func (w *wrapper) openPorts(attr *syscall.ProcAttr) (done func(), err error) {
	var closers []func() error
	done = func() {
		for _, c := range closers {
			_ = c()
		}
	}
	if len(w.launch.Ports) == 0 {
		return done, nil
	}
	if len(attr.Files) == 3 {
		attr.Files = append(attr.Files, ^uintptr(0)) // the network has no proxy
	}
	ports := agency.NewPorts(w.launch.Ports)
	for i := range ports.Forwarded {
		l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp4", "127.0.0.1:0")
		if err != nil {
			return done, fmt.Errorf("open a port of the machine: %w", err)
		}
		closers = append(closers, l.Close)
		tcp, ok := l.(*net.TCPListener)
		if !ok {
			return done, fmt.Errorf("open a port of the machine: %s is not TCP", l.Addr())
		}
		f, err := tcp.File()
		if err != nil {
			return done, fmt.Errorf("open a port of the machine: %w", err)
		}
		closers = append(closers, f.Close)
		attr.Files = append(attr.Files, f.Fd())
		ports.Forwarded[i].Address = l.Addr().String()
	}
	w.start.Ports = ports
	return done, nil
}
