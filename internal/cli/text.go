package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"agency"
)

// safeText makes untrusted text fit for a terminal: escape sequences are taken out, and all else that is not visible.
func safeText(s string) string {
	if plain(s) {
		return s
	}
	return agency.Visible(ansi.Strip(s))
}

// plain says that s is printable ASCII, as nearly all text is: it is safe, and each byte is one column.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// safeLine is safeText on one line.
func safeLine(s string) string {
	return strings.Join(strings.Fields(safeText(s)), " ")
}

// fit cuts a line to a display width, with an ellipsis where something was cut.
func fit(s string, columns int) string {
	if plain(s) && len(s) <= columns {
		return s
	}
	return ansi.Truncate(s, columns, "…")
}

// width is the display width of a line.
func width(s string) int {
	if plain(s) {
		return len(s)
	}
	return ansi.StringWidth(s)
}

// pad fills a line up to a display width.
func pad(s string, columns int) string {
	if missing := columns - width(s); missing > 0 {
		return s + strings.Repeat(" ", missing)
	}
	return s
}

// leastText is as narrow as a column of text may become, in columns of the terminal.
const leastText = 24

// hang writes a text behind a head, on a terminal with room columns: broken at spaces, below where it begins, or below the head
// where that leaves too little. A word that is longer stays whole, so that a path can be copied. Room 0 is endless.
func hang(head, text string, room int) string {
	if room == 0 {
		return strings.TrimRight(head+text, " ")
	}
	if text == "" {
		return fit(strings.TrimRight(head, " "), room)
	}
	indent := width(head)
	lines := []string{head}
	if room-indent < min(leastText, width(text)) {
		indent = min(4, room/2)
		lines = []string{strings.Repeat(" ", indent)}
		if head = strings.TrimRight(head, " "); head != "" {
			lines = append([]string{fit(head, room)}, lines...)
		}
	}
	words := 0
	for word := range strings.FieldsSeq(text) {
		last := &lines[len(lines)-1]
		if words > 0 && width(*last)+1+width(word) <= room {
			*last += " " + word
			continue
		}
		for _, part := range breakWide(word, room-indent) {
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

// breakWide breaks a word that is wider than so many columns where its writing puts no spaces between words, as wide characters tell.
func breakWide(word string, columns int) []string {
	if plain(word) || width(word) <= max(columns, utf8.RuneCountInString(word)) || strings.HasPrefix(word, "/") {
		return []string{word}
	}
	return strings.Split(ansi.Hardwrap(word, columns, true), "\n")
}

// textRows lines up cells of which the last ones are texts, on a terminal with room columns: a row for each, of one line or more.
func textRows(rows [][]string, room int) []string {
	heads := make([][]string, 0, len(rows))
	for _, row := range rows {
		heads = append(heads, append(slices.Clone(row[:len(row)-1]), "|")) // where the text begins
	}
	lined := make([]string, 0, len(rows))
	for line := range strings.Lines(columns(heads, -1, func(_ int, s string) string { return s })) {
		row := rows[len(lined)]
		lined = append(lined, hang(strings.TrimSuffix(line, "|\n"), row[len(row)-1], room))
	}
	return lined
}

// textTable is textRows as one text, for the terminal that the output is.
func (a *App) textTable(rows [][]string) string {
	return strings.Join(textRows(rows, a.room()), "\n") + "\n"
}

// room is how many columns the output has, if it is a terminal; 0 is no end of them.
func (a *App) room() int {
	room, _ := terminal(a.Out)
	return room
}

// rootCause takes the operation and path off a file error; the caller names them better.
func rootCause(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}

// count is a number and the noun that it counts.
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
