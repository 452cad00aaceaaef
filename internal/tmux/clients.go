package tmux

import (
	"context"
	"fmt"
	"strings"
)

// Terminals are the paths of the terminals that people look at the server through, whatever session they are attached to;
// without a server there are none.
func (t *Tmux) Terminals(ctx context.Context) ([]string, error) {
	out, err := t.run(ctx, "", "list-clients", "-F", "#{client_tty}")
	if noSessions(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list tmux clients: %w", err)
	}
	return strings.Fields(out), nil // a program that controls tmux has none
}
