package notify

import (
	"context"
	"strings"

	"agency"
)

// Terminals shows a message in the terminals that users have attached to a tmux server, and rings
// them. It is the channel of users who configured none.
type Terminals struct {
	bell *Bell
	show func(ctx context.Context, text string) (shown int, err error)
}

// NewTerminals returns the channel. show shows a text in each terminal, and returns in how many;
// terminals returns their paths.
func NewTerminals(show func(ctx context.Context, text string) (int, error), terminals func(ctx context.Context) ([]string, error)) *Terminals {
	return &Terminals{bell: NewBell("tmux", terminals), show: show}
}

// Name implements Channel.
func (t *Terminals) Name() string { return t.bell.Name() }

// terminalLength is the most bytes of a notice that a terminal shows.
const terminalLength = 300

// Send implements Channel. Without a terminal it has nothing to do.
func (t *Terminals) Send(ctx context.Context, n *agency.Notice) error {
	text := "agency: " + n.Title
	if n.Body != "" {
		text += ": " + n.Body
	}
	count, err := t.show(ctx, shown(strings.Join(strings.Fields(text), " "), terminalLength))
	if err != nil || count == 0 {
		return err
	}
	return t.bell.Send(ctx, n)
}
