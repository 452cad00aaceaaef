package opencode

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"agency"
	"agency/internal/harness/agent"
)

// readScreen reads its terminal. Its plugin reports nothing before a prompt, and none comes in a
// conversation that OpenCode reopens: there an empty input box, with no work shown below it, means
// that the agent waits.
func readScreen(lines []string) []agency.Evidence {
	evidence := patternsOn(lines)
	if len(evidence) == 1 && evidence[0].Signal == agency.SignalSession && rests(agent.Trimmed(lines)) {
		evidence[0].Signal = agency.SignalTurnEnded
	}
	return evidence
}

// rests reports whether a terminal shows a conversation at rest. Before the first prompt the input
// box is in the middle.
func rests(lines []string) bool {
	text, end, shown := composer(lines)
	const margin = "    "
	return shown && text == "" && !strings.HasPrefix(lines[end-1], margin) && !strings.Contains(strings.Join(lines[end:], "\n"), "esc interrupt")
}

// foot matches the end of the input box of OpenCode.
const foot = "╹▀▀▀▀"

// over matches the head of what OpenCode shows over everything else: a title, and the key that
// closes it.
var over = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s{2,}[^\s┃].*\s{8,}esc(\s{2,}.*)?$`) })

// composer reads the input box of OpenCode. Its last line names the model.
func composer(lines []string) (text string, end int, shown bool) {
	if slices.ContainsFunc(lines, over().MatchString) {
		return "", 0, false
	}
	for i, line := range slices.Backward(lines) {
		if !strings.HasPrefix(strings.TrimSpace(line), foot) {
			continue
		}
		var inside []string
		for above := i - 1; above >= 0; above-- {
			line, framed := framedLine(lines[above])
			if !framed {
				break
			}
			inside = append(inside, line)
		}
		if len(inside) < 2 {
			return "", 0, false
		}
		slices.Reverse(inside)
		return agent.Joined("", inside[:len(inside)-1]), i + 1, true
	}
	return "", 0, false
}
