package runner

import (
	"net"
	"os"
	"syscall"

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
	// Continue adds the hosts and the refusals of an earlier proxy of the runner to its own.
	Continue(before agency.NetworkUse)
	// Broken records why the runner reaches nothing any more.
	Broken(err error)
}

// connectNetwork gives the runner to start, as its fourth file, a socket by which its sandbox passes
// the listeners of its network. done is called after the start; it serves them. A runner that may
// outlive this wrapper passes them to its holder.
func (w *wrapper) connectNetwork(attr *syscall.ProcAttr) (done func(started bool), err error) {
	if w.proxy == nil {
		return func(bool) {}, nil
	}
	if w.launch.Mode == agency.ModeProtocol {
		return w.connectHeld(attr)
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

// serveNetwork serves what the sandbox listens on. A sandbox that ends before it listens has no
// network.
func (w *wrapper) serveNetwork(own *os.File) {
	listeners, err := receiveListeners(own)
	if err == nil {
		w.client.network()
		w.proxy.Serve(listeners)
	}
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
	w.kept.write()
	w.client.network()
	return nil
}
