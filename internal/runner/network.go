package runner

import (
	"net"
	"os"
	"syscall"

	"agency"
)

// Proxy forwards what a runner in a sandbox sends to the hosts that it may reach.
type Proxy interface {
	// Serve serves the listeners of the sandbox, in the order in which it opened them, until they
	// fail.
	Serve(listeners []net.Listener)
	Use() agency.NetworkUse
	// Allow adds entries to the list of hosts.
	Allow(entries []string)
	// Continue adds the hosts and the refusals of an earlier proxy of the runner to its own.
	Continue(before agency.NetworkUse)
	// Broken records why the runner cannot reach any host any more.
	Broken(err error)
}

// network is the network of a runner in a sandbox with a proxy. Without a proxy it does nothing.
type network struct {
	launch *agency.Launch
	proxy  Proxy    // nil unless the runner reaches hosts through one
	kept   *keptUse // for the next wrapper; nil when none would follow
	client *client  // sends the daemon what the runner did with its network
}

// connect gives the runner to start, as its fourth file, a socket by which its sandbox passes the
// listeners of its network. The caller calls done after the start; it serves them. A runner that may
// outlive this wrapper passes them to its holder.
func (n *network) connect(attr *syscall.ProcAttr) (done func(started bool), err error) {
	if n.proxy == nil {
		return func(bool) {}, nil
	}
	if n.launch.Mode == agency.ModeProtocol {
		return n.connectHeld(attr)
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
		go n.serve(own)
	}, nil
}

// serve serves what the sandbox listens on. A sandbox that ends before it listens has no network.
func (n *network) serve(own *os.File) {
	listeners, err := receiveListeners(own)
	if err == nil {
		n.client.network(n.use())
		n.proxy.Serve(listeners)
	}
}

// use returns what the runner did with its network; nil when it has no proxy.
func (n *network) use() *agency.NetworkUse {
	if n.proxy == nil {
		return nil
	}
	use := n.proxy.Use()
	return &use
}

// allow lets the runner reach more hosts.
func (n *network) allow(entries []string) error {
	if n.proxy == nil {
		return agency.Errorf(agency.CodeInvalidState, "the agent of %s has no list of hosts", n.launch.RunID)
	}
	n.proxy.Allow(entries)
	n.kept.write()
	n.client.network(n.use())
	return nil
}
