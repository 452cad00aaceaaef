package harness

import (
	"slices"
	"strings"

	"agency"
)

// claudeAnswer answers Claude Code's dialogs. A digit chooses at once; which one says no differs from tool to tool, and the ones
// in between change the mode of the conversation, so that leave is given by what is plainly "Yes" and refused by Escape.
func claudeAnswer(d *dialog, r *agency.Request, reply agency.Reply) (string, error) {
	if reply.Decision == agency.Deny {
		return escape, nil
	}
	if r.Kind == agency.AsksPermission {
		return d.press("Yes", "")
	}
	tabs := strings.Count(strings.Join(d.lines, ""), "☐") + strings.Count(strings.Join(d.lines, ""), "☒")
	if tabs > 1 || slices.ContainsFunc(d.options, func(o option) bool { return strings.HasPrefix(o.text, "[") }) {
		return "", d.cannotAnswer("it asks for several answers at once")
	}
	return d.choose(reply.Text, "Type something")
}
