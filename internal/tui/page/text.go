package page

import (
	"time"

	"github.com/charmbracelet/x/ansi"

	"agency/internal/cli/term"
	"agency/internal/tui/cell"
	"agency/internal/view"
)

// factIndent is the column in which the texts of facts begin.
const factIndent = 11

// Fact returns a name and, after it, a text that is wrapped to the width; no rows for an empty text.
func Fact(name, text string, width int) []cell.Line {
	if text == "" {
		return nil
	}
	lines := cell.Wrap(cell.Plain, text, factIndent, width, 0)
	lines[0][0] = cell.Of(cell.Dim, " "+term.Pad(name, factIndent-1))[0]
	return lines
}

// Ago returns how long ago something was, in words.
func Ago(d time.Duration) string {
	if d < time.Minute {
		return "now"
	}
	return view.Age(d) + " ago"
}

// Shorten returns a name that fits a width. It cuts the middle out, because names in one list often differ
// only at their ends.
func Shorten(name string, width int) string {
	wide := term.Width(name)
	if wide <= width || width < 3 {
		return term.Fit(name, width)
	}
	tail := (width - 1) / 2
	return ansi.Truncate(name, width-1-tail, "") + ansi.TruncateLeft(name, wide-tail, "…")
}
