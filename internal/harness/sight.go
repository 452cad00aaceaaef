package harness

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"agency"
)

// Sight reads what the terminal of an agent shows to one who is about to type, the top line first: a dialog that agency knows or
// any menu, and the input box. A menu counts below the input box only: above it stands what the agent said.
func Sight(kind agency.RunnerKind, lines []string) agency.Sight {
	lines = trimmed(lines)
	for _, e := range Screen(kind, lines) {
		if e.Sign == agency.SignAsked {
			return agency.Sight{Dialog: cmp.Or(e.Text, e.Event)}
		}
	}
	read, known := composers[kind]
	if !known {
		read = ruledComposer
	}
	text, end, shown := read(lines)
	if shown = shown && len(slices.DeleteFunc(slices.Clone(lines[end:]), blank)) <= composerTail; !shown {
		end = 0
	}
	sight := agency.Sight{Dialog: menu(lines[end:], shown), Boxless: known && !shown}
	if shown {
		sight.Composer = &text
	}
	return sight
}

// trimmed are lines without the empty ones at the end.
func trimmed(lines []string) []string {
	for len(lines) > 0 && blank(lines[len(lines)-1]) {
		lines = lines[:len(lines)-1]
	}
	return lines
}

func blank(line string) bool { return strings.TrimSpace(line) == "" }

// composers read the input box of an agent: its text, and the line behind it.
var composers = map[agency.RunnerKind]func(lines []string) (text string, end int, shown bool){
	agency.ClaudeCode: ruledComposer,
	agency.Codex:      codexComposer,
	agency.Gemini:     geminiComposer,
	agency.OpenCode:   opencodeComposer,
}

// composerTail is how many lines with words at most stand below an input box.
const composerTail = 8

// ruledComposer reads an input box between two rules, as Claude Code and Copilot draw it.
func ruledComposer(lines []string) (text string, end int, shown bool) {
	top, bottom := -1, -1
	for i, line := range lines {
		if rule(line) {
			top, bottom = bottom, i
		}
	}
	if top < 0 || bottom == top+1 {
		return "", 0, false
	}
	first, ok := prompted(lines[top+1], "❯", "!")
	for _, line := range lines[top+2 : bottom] {
		ok = ok && (blank(line) || strings.HasPrefix(line, "  "))
	}
	return joined(first, lines[top+2:bottom]), bottom + 1, ok
}

// rule reports whether a line is drawn from the left side on. A line of a text in an input box is indented.
func rule(line string) bool {
	return strings.HasPrefix(line, "──────────") || strings.HasPrefix(line, "▀▀▀▀▀▀▀▀▀▀") || strings.HasPrefix(line, "▄▄▄▄▄▄▄▄▄▄")
}

// prompted is what stands behind the mark with which an input box begins.
func prompted(line string, marks ...string) (string, bool) {
	line = strings.TrimSpace(strings.ReplaceAll(line, "\u00a0", " "))
	for _, mark := range marks {
		if rest, ok := strings.CutPrefix(line, mark); ok && (rest == "" || rest[0] == ' ') {
			return strings.TrimSpace(rest), true
		}
	}
	return "", false
}

// joined is the text of several lines.
func joined(first string, more []string) string {
	lines := []string{first}
	for _, line := range more {
		lines = append(lines, strings.TrimSpace(line))
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// indentedTo is the first line from a place on that is empty, or not indented so far.
func indentedTo(lines []string, from int, indent string) int {
	for from < len(lines) && !blank(lines[from]) && strings.HasPrefix(lines[from], indent) {
		from++
	}
	return from
}

// codexComposer reads the input box of Codex: from the last mark at the left to an empty line. In a dialog the mark is a cursor,
// and the keys that it takes stand below.
func codexComposer(lines []string) (text string, end int, shown bool) {
	for i, line := range slices.Backward(lines) {
		if !strings.HasPrefix(line, "›") {
			continue
		}
		end = indentedTo(lines, i+1, "  ")
		if i > 0 && !blank(lines[i-1]) || hinted(lines[end:]) {
			return "", 0, false
		}
		first, _ := prompted(line, "›")
		return joined(first, lines[i+1:end]), end, true
	}
	return "", 0, false
}

// geminiComposer reads the input box of Gemini: below the last rule that nothing frames.
func geminiComposer(lines []string) (text string, end int, shown bool) {
	for i, line := range slices.Backward(lines) {
		first, ok := prompted(line, ">", "!", "*")
		if !ok || strings.HasPrefix(line, "  ") { // a line of a text in it is indented
			continue
		}
		above := i - 1
		for above > i-5 && above >= 0 && !rule(lines[above]) {
			above--
		}
		if above < 0 || !rule(lines[above]) {
			continue
		}
		end = indentedTo(lines, i+1, "   ")
		return joined(first, lines[i+1:end]), end, true
	}
	return "", 0, false
}

// menuTail is how many lines of a terminal can be a menu's.
const menuTail = 40

// keyHint is a line that tells which keys a dialog takes. What interrupts work is not among them.
var keyHint = regexp.MustCompile(`(?i)\b(enter|return|esc|escape|space)\b[:/]?\s+(to\s+)?` +
	`(confirm|select|submit|continue|proceed|cancel|close|dismiss|back|go back|save|choose|accept|approve|reject|allow|deny|toggle|apply|exit)\b`)

// yesOrNo is a question for one of two letters at the end of a line.
var yesOrNo = regexp.MustCompile(`(?i)[\[(]\s*(y|yes)\s*/\s*(n|no)(\s*/[^\])]*)?\s*[\])]\s*[:?>]?$`)

// cursors mark the current choice of a menu.
var cursors = []string{"❯", "›", ">", "●", "▶", "▸", "→", "◉", "»", "*"}

// menu is what a menu asks that no pattern knows: numbered choices with a cursor on one of them, a question for yes or no or, where
// no input box is to be seen, a line that tells the keys for choosing. It is empty when there is none.
func menu(lines []string, composer bool) string {
	lines = lines[max(0, len(lines)-menuTail):]
	if first, ok := choices(lines); ok {
		return cmp.Or(lastText(lines[:first]), bare(lines[first]))
	}
	if composer || len(lines) == 0 {
		return ""
	}
	if last := bare(lines[len(lines)-1]); yesOrNo.MatchString(last) {
		return last
	}
	if hinted(lines) {
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
		case o.key == "1":
			first, count, marked = i, 1, 0
		case count > 0 && o.key == string(rune('1'+count)):
			count++
		default:
			continue
		}
		if o.chosen {
			marked++
		}
	}
	return first, count >= 2 && marked == 1
}

// menuOption reads a choice of any program's menu.
func menuOption(line string) (option, bool) {
	text, chosen := bare(line), false
	for _, cursor := range cursors {
		if rest, ok := strings.CutPrefix(text, cursor); ok {
			text, chosen = strings.TrimSpace(rest), true
			break
		}
	}
	o, ok := parseOption(strings.Replace(text, ") ", ". ", 1))
	o.chosen = chosen
	return o, ok
}

// bare is a line without white space and frames around it.
func bare(line string) string { return strings.Trim(line, " \t\u00a0│┃|║") }

// lastText is the last line with words that is no hint for keys.
func lastText(lines []string) string {
	for _, line := range slices.Backward(lines) {
		if text := bare(line); strings.ContainsFunc(text, unicode.IsLetter) && !keyHint.MatchString(text) {
			return text
		}
	}
	return ""
}

// hintTail is how many of the last lines with words can tell which keys a dialog takes.
const hintTail = 3

// hinted reports whether the end of a terminal tells which keys a dialog takes.
func hinted(lines []string) bool {
	seen := 0
	for _, line := range slices.Backward(lines) {
		text := bare(line)
		if !strings.ContainsFunc(text, unicode.IsLetter) {
			continue
		}
		if seen++; keyHint.MatchString(text) {
			return true
		}
		if seen == hintTail {
			return false
		}
	}
	return false
}
