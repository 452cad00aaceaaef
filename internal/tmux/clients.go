package tmux

import (
	"context"
	"fmt"
	"strings"
)

// Terminals returns the paths of the terminals attached to the server, in any session; without a
// server there are none.
func (t *Tmux) Terminals(ctx context.Context) ([]string, error) {
	out, err := t.run(ctx, "", "list-clients", "-F", "#{client_tty}")
	if noSessions(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list tmux clients: %w", err)
	}
	return strings.Fields(out), nil // a control client has none
}
