package runner

import (
	"fmt"
	"net"
	"os"
	"path/filepath"

	"agency"
	"agency/internal/socket"
)

// Relay passes on what a runner in a sandbox asks of the daemon.
type Relay interface {
	// Serve answers what connects to a listener, until that fails.
	Serve(l net.Listener)
}

// serveRelay serves the requests of a runner in a sandbox from here on. folder is in the sandbox and
// holds the socket, so a wrapper that adopts a runner makes the socket of a killed wrapper again.
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
