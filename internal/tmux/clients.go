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

// messageTime is how long a message stays in a status line, in milliseconds.
const messageTime = "8000"

// Show shows a line of text in the status line of each client of the server, and returns how many
// there are. The text may hold anything but control characters.
func (t *Tmux) Show(ctx context.Context, text string) (clients int, err error) {
	out, err := t.run(ctx, "", "list-clients", "-F", "#{client_name}")
	if noSessions(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("list tmux clients: %w", err)
	}
	plain := strings.NewReplacer("#", "##", "%", "%%").Replace(text) // neither a format nor a date
	for line := range strings.Lines(out) {
		name := strings.TrimSuffix(line, "\n")
		if _, err := t.run(ctx, "", "display-message", "-c", name, "-d", messageTime, literal(plain)); err == nil { // it may have left
			clients++
		}
	}
	return clients, nil
}
