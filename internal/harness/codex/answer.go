package codex

import (
	"strings"

	"agency"
	"agency/internal/harness/agent"
)

// answer answers Codex's dialogs. Escape refuses, and ends the turn with it.
func answer(d *agent.Dialog, r *agency.Request, reply agency.Reply) (string, error) {
	if reply.Decision == agency.Deny {
		return agent.Escape, nil
	}
	if r.Kind == agency.AsksPermission {
		return d.Press("Yes, proceed (y)", "y")
	}
	for _, line := range d.Lines {
		if strings.Contains(line, "Question ") && !strings.Contains(line, "Question 1/1 ") {
			return "", d.CannotAnswer("it asks for several answers at once")
		}
	}
	return d.Choose(reply.Text, "")
}
