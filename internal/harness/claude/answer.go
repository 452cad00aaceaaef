package claude

import (
	"slices"
	"strings"

	"agency"
	"agency/internal/harness/agent"
)

// answer answers Claude Code's dialogs. A digit chooses at once; which one says no differs from tool to tool, and the ones
// in between change the mode of the conversation, so that leave is given by what is plainly "Yes" and refused by Escape.
func answer(d *agent.Dialog, r *agency.Request, reply agency.Reply) (string, error) {
	if reply.Decision == agency.Deny {
		return agent.Escape, nil
	}
	if r.Kind == agency.AsksPermission {
		return d.Press("Yes", "")
	}
	tabs := strings.Count(strings.Join(d.Lines, ""), "☐") + strings.Count(strings.Join(d.Lines, ""), "☒")
	if tabs > 1 || slices.ContainsFunc(d.Options, func(o agent.Option) bool { return strings.HasPrefix(o.Text, "[") }) {
		return "", d.CannotAnswer("it asks for several answers at once")
	}
	return d.Choose(reply.Text, "Type something")
}
