// Package cell draws styled text in rows of terminal cells. A row has only the escape sequences of its own
// styles, whatever its texts hold.
package cell

import (
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"agency"
	"agency/internal/cli/term"
	"agency/internal/view"
)

// Style is how a text looks: a StyledText without a text.
type Style = agency.StyledText

// Line is a row, or the beginning of one.
type Line []agency.StyledText

// The styles without a colour.
var (
	Plain    = Style{}
	Bold     = Style{Attributes: "b"}
	Dim      = Style{Attributes: "d"}
	Reversed = Style{Attributes: "r"}
)

// Coloured returns the style of a colour of view, as one of the 16 colours of the terminal.
func Coloured(c view.Colour) Style {
	switch c {
	case view.Green:
		return Style{Foreground: "2"}
	case view.Yellow:
		return Style{Foreground: "3"}
	case view.Red:
		return Style{Foreground: "1"}
	case view.Cyan:
		return Style{Foreground: "6"}
	default:
		return Dim
	}
}

// With returns a style with more attributes.
func With(s Style, attributes string) Style {
	s.Attributes += attributes
	return s
}

// Of returns a row with one text.
func Of(s Style, text string) Line { return Line{}.Add(s, text) }

// joiner joins several characters to one. Terminals do not agree on its width, so Add leaves the joiner out
// and the characters stand beside each other.
const joiner = '\u200d'

// Add returns the row with a text at its end. The text may be untrusted.
func (l Line) Add(s Style, text string) Line {
	s.Text = strings.Map(func(r rune) rune {
		switch r {
		case '\n', '\t':
			return ' '
		case joiner:
			return -1
		}
		return r
	}, term.SafeText(text))
	return append(l, s)
}

// Width returns how many cells the row has.
func (l Line) Width() int {
	width := 0
	for i := range l {
		width += term.Width(l[i].Text)
	}
	return width
}

// Fit returns the row cut off or filled up to a width. A row that is cut off ends with "…".
func (l Line) Fit(width int) Line { return l.fit(width, "…") }

// Crop is Fit without "…", for the screen of a terminal that is wider than the row.
func (l Line) Crop(width int) Line { return l.fit(width, "") }

func (l Line) fit(width int, end string) Line {
	fitted, left := make(Line, 0, len(l)+1), width
	whole := l.Width() <= width
	for i := range l {
		s := l[i]
		w := term.Width(s.Text)
		if !whole && (w > left-ansi.StringWidth(end) && i < len(l)-1 || w > left) {
			s.Text = ansi.Truncate(s.Text, max(left-ansi.StringWidth(end), 0), "") + end
			left -= term.Width(s.Text)
			fitted = append(fitted, s)
			break
		}
		left -= w
		fitted = append(fitted, s)
	}
	if left > 0 {
		fitted = append(fitted, Style{Text: strings.Repeat(" ", left)})
	}
	return fitted
}

// All returns the row with one style in place of its own styles.
func (l Line) All(s Style) Line {
	all := make(Line, len(l))
	for i := range l {
		all[i] = s
		all[i].Text = l[i].Text
	}
	return all
}

// Text returns the row without its styles.
func (l Line) Text() string {
	var text strings.Builder
	for i := range l {
		text.WriteString(l[i].Text)
	}
	return text.String()
}

// String returns the row with the escape sequences of its styles.
func (l Line) String() string {
	var out strings.Builder
	for i := range l {
		if codes := sgr(l[i]); codes != "" {
			out.WriteString("\x1b[" + codes + "m" + l[i].Text + "\x1b[m")
		} else {
			out.WriteString(l[i].Text)
		}
	}
	return out.String()
}

// sgr returns the parameters of the escape sequence (SGR) for a style. A colour that is not valid is left out.
func sgr(s Style) string {
	codes := []string{}
	for _, a := range s.Attributes {
		if i := strings.IndexRune("bdiu r s", a); i >= 0 && a != ' ' {
			codes = append(codes, strconv.Itoa([]int{1, 2, 3, 4, 0, 7, 0, 9}[i]))
		}
	}
	if code := colour(s.Foreground, 30); code != "" {
		codes = append(codes, code)
	}
	if code := colour(s.Background, 40); code != "" {
		codes = append(codes, code)
	}
	return strings.Join(codes, ";")
}

// colour returns the parameters of a colour: of the foreground when base is 30, of the background
// when it is 40.
func colour(text string, base int) string {
	if hex, ok := strings.CutPrefix(text, "#"); ok {
		rgb, err := strconv.ParseUint(hex, 16, 24)
		if err != nil {
			return ""
		}
		return strings.Join([]string{strconv.Itoa(base + 8), "2", strconv.FormatUint(rgb>>16, 10), strconv.FormatUint(rgb>>8&0xff, 10), strconv.FormatUint(rgb&0xff, 10)}, ";")
	}
	n, err := strconv.ParseUint(text, 10, 8)
	switch {
	case err != nil:
		return ""
	case n < 8:
		return strconv.Itoa(base + int(n))
	case n < 16:
		return strconv.Itoa(base + 60 + int(n) - 8)
	default:
		return strconv.Itoa(base+8) + ";5;" + strconv.FormatUint(n, 10)
	}
}

// Wrap returns a text in rows of a width, each after an indent. With most > 0 there are at most that many
// rows, and the last ends with "…" if the text has more.
func Wrap(s Style, text string, indent, width, most int) []Line {
	lines := []Line{}
	room := max(width-indent, 1)
	for paragraph := range strings.SplitSeq(text, "\n") {
		for piece := range strings.SplitSeq(ansi.Wrap(strings.ReplaceAll(term.SafeText(paragraph), "\t", " "), room, ""), "\n") {
			lines = append(lines, Of(Plain, strings.Repeat(" ", indent)).Add(s, piece))
		}
	}
	if most > 0 && len(lines) > most {
		lines = lines[:most]
		lines[most-1] = lines[most-1].Add(Dim, " …")
	}
	return lines
}
