package alert

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"agency"
	"agency/internal/cli/command"
	"agency/internal/cli/term"
	"agency/internal/duration"
)

// shownID is how much of the end of a message's id is shown, in bytes.
const shownID = 9

// printMessages shows each message as one line about it and what it says below that.
func printMessages(ctx context.Context, d *command.Deps, w io.Writer, messages []agency.Message) {
	if len(messages) == 0 {
		d.Chat("no messages")
		return
	}
	named := d.Names(ctx)
	for i := range messages {
		m := &messages[i]
		line := fmt.Sprintf("%s  %s ago  %s  from %s to %s", messageID(m.ID), duration.Short(d.Now().Sub(m.CreatedAt)), term.SafeLine(m.Type),
			named(m.From), named(m.Recipient))
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
		for text := range strings.Lines(messageText(m)) {
			if text = term.SafeLine(text); text != "" {
				_, _ = fmt.Fprintln(w, term.Hang("    ", text, d.Columns()))
			}
		}
	}
}

// sessionWords are what a message of agency's says of a session.
func sessionWords(kind string) string {
	if slices.Contains(agency.SessionAlertKinds(), agency.AlertKind(kind)) {
		return agency.AlertKind(kind).Words()
	}
	return agency.NoticeKind(kind).Words()
}

// messageID is the end of an id, which is enough to acknowledge the message.
func messageID(id string) string { return term.SafeLine(id[max(0, len(id)-shownID):]) }

// messageText is what a message says to people. One that says nothing in the usual words is shown as it is.
func messageText(m *agency.Message) string {
	var said map[string]any
	if json.Unmarshal(m.Payload, &said) != nil {
		return string(m.Payload)
	}
	word := func(key string) string { text, _ := said[key].(string); return text }
	if m.From == agency.Daemon && word("worker_name") != "" {
		if text := agency.AlertText(m.Payload); text != "" {
			return word("worker_name") + " " + agency.AlertKind(m.Type).Words() + ": " + text
		}
		return word("worker_name") + " " + agency.AlertKind(m.Type).Words()
	}
	if m.From == agency.Daemon && word("session_id") != "" {
		name := word("session_name")
		if name == "" {
			name = word("session_id")
		}
		return "session " + name + " " + sessionWords(m.Type) + ": " + word("text")
	}
	var lines []string
	for _, key := range []string{"summary", "text", "message", "question", "error"} {
		if text := word(key); text != "" {
			lines = append(lines, text)
		}
	}
	for _, key := range []string{"questions", "blockers"} {
		list, _ := said[key].([]any)
		for _, item := range list {
			if text, ok := item.(string); ok && text != "" {
				lines = append(lines, "- "+text)
			}
		}
	}
	if status := word("status"); status != "" {
		lines = append([]string{strings.ReplaceAll(status, "_", " ")}, lines...)
	}
	if len(lines) == 0 {
		return string(m.Payload)
	}
	return strings.Join(lines, "\n")
}
