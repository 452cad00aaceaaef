package gemini

import (
	"slices"
	"strings"

	"agency/internal/harness/agent"
)

// composer reads the input box of Gemini: below the last rule that is not part of a frame.
func composer(lines []string) (text string, end int, shown bool) {
	for i, line := range slices.Backward(lines) {
		first, ok := agent.Prompted(line, ">", "!", "*")
		if !ok || strings.HasPrefix(line, "  ") { // a line of a text in it is indented
			continue
		}
		above := i - 1
		for above > i-5 && above >= 0 && !agent.Rule(lines[above]) {
			above--
		}
		if above < 0 || !agent.Rule(lines[above]) {
			continue
		}
		end = agent.IndentedTo(lines, i+1, "   ")
		return agent.Joined(first, lines[i+1:end]), end, true
	}
	return "", 0, false
}
