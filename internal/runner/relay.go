package runner

import (
	"fmt"
	"net"
	"os"
	"path/filepath"

	"agency"
	"agency/internal/socket"
)

// Relay passes the requests of a runner in a sandbox to the daemon.
type Relay interface {
	// Serve answers the requests on a listener, until the listener fails.
	Serve(l net.Listener)
}

// serveRelay begins to serve the requests of a runner in a sandbox, on a socket in folder, which the sandbox
// has. A wrapper that adopts a runner replaces the socket of the killed wrapper.
func serveRelay(relay Relay, folder string) error {
	l, err := socket.Listen(folder, agency.RelaySocket)
	if err != nil {
		return fmt.Errorf("listen for the sandbox: %w", err)
	}
	go relay.Serve(l)
	return nil
}

// removeRelay removes the socket for the requests of a runner in a sandbox.
func removeRelay(folder string) error { return os.Remove(filepath.Join(folder, agency.RelaySocket)) }
