package alert

import (
	"context"
	"fmt"
	"io"
	"strings"

	"agency"
	"agency/internal/cli/command"
	"agency/internal/cli/term"
	"agency/internal/duration"
	"agency/internal/view"
)

// shownID is how much of the end of a message's id is shown, in bytes.
const shownID = 9

// printMessages prints each message as one line about it, with its text below. For a message from
// agency the line has its type in words.
func printMessages(ctx context.Context, d *command.Deps, w io.Writer, messages []agency.Message) {
	if len(messages) == 0 {
		d.Chat("no messages")
		return
	}
	named := d.Names(ctx)
	for i := range messages {
		m := &messages[i]
		line := fmt.Sprintf("%s  %s ago  ", messageID(m.ID), duration.Short(d.Now().Sub(m.CreatedAt)))
		if m.From != agency.Daemon {
			line += term.SafeLine(m.Type) + "  "
		}
		line += fmt.Sprintf("from %s to %s", named(m.From), named(m.Recipient))
		if m.ReplyTo != "" {
			line += ", in answer to " + messageID(m.ReplyTo)
		}
		switch {
		case m.Dead != "":
			line += "  [dead: " + term.SafeLine(m.Dead) + "]"
		case m.AckedAt != nil:
			line += "  [acknowledged]"
		}
		_, _ = fmt.Fprintln(w, line)
		for text := range strings.Lines(view.MessageText(m)) {
			if text = term.SafeLine(text); text != "" {
				_, _ = fmt.Fprintln(w, term.Hang("    ", text, d.Columns()))
			}
		}
	}
}

// messageID returns the end of an id, which is enough to acknowledge the message.
func messageID(id string) string { return term.SafeLine(id[max(0, len(id)-shownID):]) }
