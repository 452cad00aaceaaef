package harness

import (
	"strings"

	"agency"
)

// codexAnswer answers Codex's dialogs. Escape refuses, and ends the turn with it.
func codexAnswer(d *dialog, r *agency.Request, reply agency.Reply) (string, error) {
	if reply.Decision == agency.Deny {
		return escape, nil
	}
	if r.Kind == agency.AsksPermission {
		return d.press("Yes, proceed (y)", "y")
	}
	for _, line := range d.lines {
		if strings.Contains(line, "Question ") && !strings.Contains(line, "Question 1/1 ") {
			return "", d.cannotAnswer("it asks for several answers at once")
		}
	}
	return d.choose(reply.Text, "")
}
