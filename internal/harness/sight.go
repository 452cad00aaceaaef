package harness

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"agency"
	"agency/internal/harness/agent"
)

// Sight reads what matters on the terminal of an agent before typing, the top line first: a dialog
// that agency knows or any menu, and the input box. A menu counts only below the input box: above
// it is the agent's output.
func Sight(kind agency.RunnerKind, lines []string) agency.Sight {
	lines = agent.Trimmed(lines)
	for _, e := range Screen(kind, lines) {
		if e.Signal == agency.SignalAsked {
			return agency.Sight{Dialog: cmp.Or(e.Text, e.Event)}
		}
	}
	read, known := of(kind).Composer, true
	if read == nil {
		read, known = agent.RuledComposer, false
	}
	text, end, shown := read(lines)
	if shown = shown && len(slices.DeleteFunc(slices.Clone(lines[end:]), agent.Blank)) <= composerTail; !shown {
		end = 0
	}
	sight := agency.Sight{Dialog: menu(lines[end:], shown), Boxless: known && !shown}
	if shown {
		sight.Composer = &text
	}
	return sight
}

// composerTail is the most lines with words below an input box.
const composerTail = 8

// menuTail is the most lines of a menu.
const menuTail = 40

// yesOrNo is a question for one of two letters at the end of a line.
var yesOrNo = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)[\[(]\s*(y|yes)\s*/\s*(n|no)(\s*/[^\])]*)?\s*[\])]\s*[:?>]?$`)
})

// cursors mark the current choice of a menu.
var cursors = []string{"❯", "›", ">", "●", "▶", "▸", "→", "◉", "»", "*"}

// menu returns the request of a menu that no pattern knows: numbered choices with a cursor on one
// of them, a question for yes or no or, where no input box is visible, a line that lists the keys
// for choosing. It is empty when there is none.
func menu(lines []string, composer bool) string {
	lines = lines[max(0, len(lines)-menuTail):]
	if first, ok := choices(lines); ok {
		return cmp.Or(lastText(lines[:first]), agent.Bare(lines[first]))
	}
	if composer || len(lines) == 0 {
		return ""
	}
	if last := agent.Bare(lines[len(lines)-1]); yesOrNo().MatchString(last) {
		return last
	}
	if agent.Hinted(lines) {
		return lastText(lines)
	}
	return ""
}

// choices finds the newest numbered choices of which just one carries a cursor.
func choices(lines []string) (first int, ok bool) {
	count, marked := 0, 0
	for i, line := range lines {
		o, isOption := menuOption(line)
		switch {
		case !isOption:
			continue
		case o.Key == "1":
			first, count, marked = i, 1, 0
		case count > 0 && o.Key == string(rune('1'+count)):
			count++
		default:
			continue
		}
		if o.Chosen {
			marked++
		}
	}
	return first, count >= 2 && marked == 1
}

// menuOption reads a choice of any program's menu.
func menuOption(line string) (agent.Option, bool) {
	text, chosen := agent.Bare(line), false
	for _, cursor := range cursors {
		if rest, ok := strings.CutPrefix(text, cursor); ok {
			text, chosen = strings.TrimSpace(rest), true
			break
		}
	}
	o, ok := agent.ParseOption(strings.Replace(text, ") ", ". ", 1))
	o.Chosen = chosen
	return o, ok
}

// lastText returns the last line with words that is not a hint for keys.
func lastText(lines []string) string {
	for _, line := range slices.Backward(lines) {
		if text := agent.Bare(line); strings.ContainsFunc(text, unicode.IsLetter) && !agent.KeyHint().MatchString(text) {
			return text
		}
	}
	return ""
}
