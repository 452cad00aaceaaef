package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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

// serveRelay takes the requests of a runner in a sandbox from here on. The folder of its socket is in
// the sandbox, so a wrapper that adopts a runner makes the socket of a killed one again.
func (w *wrapper) serveRelay() error {
	if w.relay == nil {
		return nil
	}
	if err := os.Remove(w.relaySocket()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the dead socket of the sandbox: %w", err)
	}
	path, done, err := socket.Short(w.launch.Relay, agency.RelaySocket)
	if err != nil {
		return fmt.Errorf("listen for the sandbox: %w", err)
	}
	defer done()
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", path)
	if err != nil {
		return fmt.Errorf("listen for the sandbox: %w", err)
	}
	if unix, ok := l.(*net.UnixListener); ok {
		unix.SetUnlinkOnClose(false) // its path is valid only now
	}
	go w.relay.Serve(l)
	return nil
}

// endRelay removes the socket of a runner that has ended.
func (w *wrapper) endRelay() {
	if w.relay != nil {
		_ = os.Remove(w.relaySocket())
	}
}

func (w *wrapper) relaySocket() string { return filepath.Join(w.launch.Relay, agency.RelaySocket) }
