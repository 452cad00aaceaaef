package claude

import (
	"slices"
	"strings"

	"agency"
	"agency/internal/harness/agent"
)

// answer answers Claude Code's dialogs. A digit chooses at once; the digit for no differs from tool
// to tool, and the ones in between change the mode of the conversation. So permission is given by
// the option that is plainly "Yes", and refused by Escape.
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
