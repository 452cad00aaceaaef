package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// safeText makes untrusted text fit for a terminal: escape sequences are taken out, and control characters other than
// line feed and tab are shown as �.
func safeText(s string) string {
	if plain(s) {
		return s
	}
	return strings.Map(safeRune, strings.ToValidUTF8(ansi.Strip(s), string(unicode.ReplacementChar)))
}

// safeRune is � for a character that a terminal would obey instead of showing it.
func safeRune(r rune) rune {
	if r != '\n' && r != '\t' && (unicode.IsControl(r) || isBidi(r)) {
		return unicode.ReplacementChar
	}
	return r
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

// isBidi says that a character changes the direction of what follows it, so that text could look like other text.
func isBidi(r rune) bool {
	return (r >= 0x202a && r <= 0x202e) || (r >= 0x2066 && r <= 0x2069) || r == 0x061c || r == 0x200e || r == 0x200f
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
