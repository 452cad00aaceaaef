package runner

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"agency"
)

// Proxy passes on what a runner in a sandbox sends to the hosts that it may reach.
type Proxy interface {
	// Serve serves the listeners of the sandbox, in the order in which it opened them, until they
	// fail.
	Serve(listeners []net.Listener)
	Use() agency.NetworkUse
	// Allow adds entries to the list of hosts.
	Allow(entries []string)
}

// mostListeners is how many listeners a sandbox may pass.
const mostListeners = 64

// connectNetwork gives the runner to start, as its fourth file, a socket by which its sandbox passes
// the listeners of its network. done is called after the start; it serves them.
func (w *wrapper) connectNetwork(attr *syscall.ProcAttr) (done func(started bool), err error) {
	if w.proxy == nil {
		return func(bool) {}, nil
	}
	own, theirs, err := passingPair()
	if err != nil {
		return nil, err
	}
	attr.Files = append(attr.Files, theirs.Fd())
	return func(started bool) {
		_ = theirs.Close()
		if !started {
			_ = own.Close()
			return
		}
		go w.serveNetwork(own)
	}, nil
}

// passingPair returns the two ends of a socket by which a sandbox passes its listeners.
func passingPair() (own, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a socket for the proxy: %w", err)
	}
	unix.CloseOnExec(pair[0])
	unix.CloseOnExec(pair[1])
	return os.NewFile(uintptr(pair[0]), "listeners"), os.NewFile(uintptr(pair[1]), "listeners"), nil
}

// serveNetwork serves what the sandbox listens on. A sandbox that ends before it listens has no
// network.
func (w *wrapper) serveNetwork(own *os.File) {
	listeners, err := receiveListeners(own)
	_ = own.Close()
	if err == nil {
		w.client.network()
		w.proxy.Serve(listeners)
	}
}

// receiveListeners returns the listeners that the other end of a socket passes in one message.
func receiveListeners(own *os.File) ([]net.Listener, error) {
	conn, err := net.FileConn(own)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
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
	var listeners []net.Listener
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return nil, err
		}
		for _, fd := range fds {
			f := os.NewFile(uintptr(fd), "listener")
			l, err := net.FileListener(f)
			_ = f.Close()
			if err != nil {
				return nil, err
			}
			listeners = append(listeners, l)
		}
	}
	if len(listeners) == 0 {
		return nil, errors.New("it passed no listener")
	}
	return listeners, nil
}

// networkUse returns what the runner did with its network; nil when it has no proxy.
func (w *wrapper) networkUse() *agency.NetworkUse {
	if w.proxy == nil {
		return nil
	}
	use := w.proxy.Use()
	return &use
}

// allow lets the runner reach more hosts.
func (w *wrapper) allow(entries []string) error {
	if w.proxy == nil {
		return agency.Errorf(agency.CodeInvalidState, "the agent of %s has no list of hosts", w.launch.RunID)
	}
	w.proxy.Allow(entries)
	w.client.network()
	return nil
}
