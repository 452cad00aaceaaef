package runner

import (
	"net"
	"os"
	"time"

	"agency"
	"agency/internal/plain"
)

// setupNetwork is the network of a setup in a sandbox with a proxy. Without a proxy it does nothing.
type setupNetwork struct {
	proxy Proxy

	own, theirs *os.File            // the two ends by which the setup passes its listeners
	listeners   chan []net.Listener // gets the listeners, or none when the sandbox ended without passing any
	served      chan struct{}       // closed when the proxy has ended
}

func (n *setupNetwork) open(proxy Proxy) (err error) {
	n.proxy, n.listeners, n.served = proxy, make(chan []net.Listener, 1), make(chan struct{})
	n.own, n.theirs, err = passingPair()
	return err
}

// close closes what is open of a setup that did not start.
func (n *setupNetwork) close() { _, _ = n.own.Close(), n.theirs.Close() }

// serve serves what the setup listens on, from its start until end is called.
func (n *setupNetwork) serve() {
	if n.proxy == nil {
		return
	}
	_ = n.theirs.Close()
	go func() {
		defer close(n.served)
		listeners, err := receiveListeners(n.own)
		n.listeners <- listeners
		if err == nil {
			n.proxy.Serve(listeners)
		}
	}()
}

// end ends the proxy of a setup whose processes have ended. It notes each host that was refused, and calls
// used with all that the setup did with its network.
func (n *setupNetwork) end(note func(text string), used func(agency.NetworkUse)) {
	if n.proxy == nil {
		return
	}
	select {
	case listeners := <-n.listeners:
		for _, l := range listeners {
			_ = l.Close()
		}
	case <-time.After(setupDrain): // a process that does not end has the other end
	}
	select {
	case <-n.served:
	case <-time.After(setupDrain):
	}
	use := n.proxy.Use()
	if used != nil {
		used(use)
	}
	for _, r := range use.Refused {
		text := r.Host + " was refused: " + r.Reason
		if r.Entry != "" {
			text += "; to allow it, name " + r.Entry + " in [sandbox] hosts"
		}
		note(plain.OneLine(text))
	}
}
