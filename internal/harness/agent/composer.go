package agent

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// Trimmed returns lines without the empty ones at the end.
func Trimmed(lines []string) []string {
	for len(lines) > 0 && Blank(lines[len(lines)-1]) {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// Blank reports whether a line shows nothing.
func Blank(line string) bool { return strings.TrimSpace(line) == "" }

// RuledComposer reads an input box between two rules, as Claude Code and Copilot draw it.
func RuledComposer(lines []string) (text string, end int, shown bool) {
	top, bottom := -1, -1
	for i, line := range lines {
		if Rule(line) {
			top, bottom = bottom, i
		}
	}
	if top < 0 || bottom == top+1 {
		return "", 0, false
	}
	first, ok := Prompted(lines[top+1], "❯", "!")
	for _, line := range lines[top+2 : bottom] {
		ok = ok && (Blank(line) || strings.HasPrefix(line, "  "))
	}
	return Joined(first, lines[top+2:bottom]), bottom + 1, ok
}

// Rule reports whether a line is a rule that begins at the left edge. A line of text in an input
// box is indented.
func Rule(line string) bool {
	return strings.HasPrefix(line, "──────────") || strings.HasPrefix(line, "▀▀▀▀▀▀▀▀▀▀") || strings.HasPrefix(line, "▄▄▄▄▄▄▄▄▄▄")
}

// Prompted returns the text after the mark with which an input box begins.
func Prompted(line string, marks ...string) (string, bool) {
	line = strings.TrimSpace(strings.ReplaceAll(line, "\u00a0", " "))
	for _, mark := range marks {
		if rest, ok := strings.CutPrefix(line, mark); ok && (rest == "" || rest[0] == ' ') {
			return strings.TrimSpace(rest), true
		}
	}
	return "", false
}

// Joined returns the text of several lines.
func Joined(first string, more []string) string {
	lines := []string{first}
	for _, line := range more {
		lines = append(lines, strings.TrimSpace(line))
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// IndentedTo returns the index of the first line, from an index on, that is empty or indented less.
func IndentedTo(lines []string, from int, indent string) int {
	for from < len(lines) && !Blank(lines[from]) && strings.HasPrefix(lines[from], indent) {
		from++
	}
	return from
}

// KeyHint matches a line that lists the keys of a dialog. A key that interrupts work is not among
// them.
var KeyHint = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(enter|return|esc|escape|space)\b[:/]?\s+(to\s+)?` +
		`(confirm|select|submit|continue|proceed|cancel|close|dismiss|back|go back|save|choose|accept|approve|reject|allow|deny|toggle|apply|exit)\b`)
})

// Bare returns a line without white space and frames around it.
func Bare(line string) string { return strings.Trim(line, " \t\u00a0│┃|║") }

// hintTail is how many of the last lines with words can list the keys of a dialog.
const hintTail = 3

// Hinted reports whether the end of a terminal lists the keys of a dialog.
func Hinted(lines []string) bool {
	seen := 0
	for _, line := range slices.Backward(lines) {
		text := Bare(line)
		if !strings.ContainsFunc(text, unicode.IsLetter) {
			continue
		}
		if seen++; KeyHint().MatchString(text) {
			return true
		}
		if seen == hintTail {
			return false
		}
	}
	return false
}
