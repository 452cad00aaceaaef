package term

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"agency/internal/plain"
)

// SafeText returns untrusted text made safe for a terminal: it removes escape sequences and
// everything else that is invisible.
func SafeText(s string) string {
	if isASCII(s) {
		return s
	}
	return plain.Visible(ansi.Strip(s))
}

// isASCII reports whether s is printable ASCII, as most text is: it is safe, and each byte is one
// column.
func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// SafeLine is SafeText on one line.
func SafeLine(s string) string {
	if isASCII(s) && !strings.HasPrefix(s, " ") && !strings.HasSuffix(s, " ") && !strings.Contains(s, "  ") {
		return s
	}
	return strings.Join(strings.Fields(SafeText(s)), " ")
}

// Fit cuts a line to a display width, with an ellipsis where something was cut.
func Fit(s string, columns int) string {
	if isASCII(s) && len(s) <= columns {
		return s
	}
	return ansi.Truncate(s, columns, "…")
}

// Width returns the display width of a line.
func Width(s string) int {
	if isASCII(s) {
		return len(s)
	}
	return ansi.StringWidth(s)
}

// Pad fills a line up to a display width.
func Pad(s string, columns int) string {
	if missing := columns - Width(s); missing > 0 {
		return s + strings.Repeat(" ", missing)
	}
	return s
}

// LeastText is the least width of a column of text, in columns of the terminal.
const LeastText = 24

// Hang returns a text after a head, for width columns. It breaks the text at spaces and indents it
// to its beginning. When that leaves too little room, or too little for a single word, the text
// begins below the head. A longer word stays whole, so that a path can be copied. Width 0 means no
// limit.
func Hang(head, text string, width int) string {
	if width == 0 {
		return strings.TrimRight(head+text, " ")
	}
	if text == "" {
		return Fit(strings.TrimRight(head, " "), width)
	}
	indent := Width(head)
	lines := []string{head}
	room, most := width-indent, width-min(4, width/2)
	if room < min(LeastText, Width(text)) || room < Width(text) && Width(text) <= most && !strings.Contains(text, " ") {
		indent = min(4, width/2)
		lines = []string{strings.Repeat(" ", indent)}
		if head = strings.TrimRight(head, " "); head != "" {
			lines = append([]string{Fit(head, width)}, lines...)
		}
	}
	words := 0
	for word := range strings.FieldsSeq(text) {
		last := &lines[len(lines)-1]
		if words > 0 && Width(*last)+1+Width(word) <= width {
			*last += " " + word
			continue
		}
		for _, part := range breakWide(word, width-indent) {
			if words == 0 {
				*last += part
			} else {
				lines = append(lines, strings.Repeat(" ", indent)+part)
			}
			words++
		}
	}
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// breakWide breaks a word that is wider than columns if its script puts no spaces between words,
// which wide characters indicate.
func breakWide(word string, columns int) []string {
	if isASCII(word) || Width(word) <= max(columns, utf8.RuneCountInString(word)) || strings.HasPrefix(word, "/") {
		return []string{word}
	}
	return strings.Split(ansi.Hardwrap(word, columns, true), "\n")
}

// TextRows aligns rows whose last cells are texts, for width columns: each row has one line or
// more.
func TextRows(rows [][]string, width int) []string {
	heads := make([][]string, 0, len(rows))
	for _, row := range rows {
		heads = append(heads, append(slices.Clone(row[:len(row)-1]), "|")) // where the text begins
	}
	lined := make([]string, 0, len(rows))
	for line := range strings.Lines(Table(heads)) {
		row := rows[len(lined)]
		lined = append(lined, Hang(strings.TrimSuffix(line, "|\n"), row[len(row)-1], width))
	}
	return lined
}
