package command

import (
	"strings"

	"agency/internal/api"
	"agency/internal/cli/term"
)

// Parts returns a line for each agent of a session whose work lands with the work of others.
func Parts(parts []api.SessionPart) []string {
	lines := make([]string, 0, len(parts))
	for _, p := range parts {
		lines = append(lines, term.SafeLine(p.Agent+" is a part of "+strings.Join(p.Of, ", ")))
	}
	return lines
}
