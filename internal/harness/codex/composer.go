package codex

import (
	"slices"
	"strings"

	"agency/internal/harness/agent"
)

// composer reads the input box of Codex: from the last mark at the left to an empty line. In a
// dialog the mark is a cursor, and its keys are listed below.
func composer(lines []string) (text string, end int, shown bool) {
	for i, line := range slices.Backward(lines) {
		if !strings.HasPrefix(line, "›") {
			continue
		}
		end = agent.IndentedTo(lines, i+1, "  ")
		if i > 0 && !agent.Blank(lines[i-1]) || agent.Hinted(lines[end:]) {
			return "", 0, false
		}
		first, _ := agent.Prompted(line, "›")
		return agent.Joined(first, lines[i+1:end]), end, true
	}
	return "", 0, false
}
