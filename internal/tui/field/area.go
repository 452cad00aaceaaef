package field

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"agency/internal/cli/term"
	"agency/internal/tui/cell"
)

// Area is a text of several lines, with the place in it where the next character goes.
type Area struct {
	Field

	width int // of a row, as it was drawn last
	top   int // the first visible row
}

// NewArea returns an area with a text, and the cursor at its end.
func NewArea(text string) Area { return Area{Field: New(text), width: 1 << 20} }

// Press handles a key, and reports whether the area used it. Up and down are not used in the first and the
// last row.
func (a *Area) Press(key tea.KeyPressMsg) bool {
	switch key.String() {
	case "enter", "ctrl+j", "alt+enter", "shift+enter":
		a.Insert("\n")
	case "up":
		return a.move(-1)
	case "down":
		return a.move(1)
	case "home", "ctrl+a":
		a.at = a.lineStart()
	case "end", "ctrl+e":
		a.at = a.lineEnd()
	case "ctrl+u":
		from := a.lineStart()
		a.text, a.at = append(a.text[:from:from], a.text[a.at:]...), from
	case "ctrl+k":
		a.text = append(a.text[:a.at:a.at], a.text[a.lineEnd():]...)
	default:
		if key.Text == "" {
			return a.Field.Press(key)
		}
		a.Insert(key.Text)
	}
	return true
}

// Insert types a text, which may be pasted. Its lines stay lines.
func (a *Area) Insert(text string) {
	a.insert([]rune(strings.ReplaceAll(term.SafeText(text), "\t", "    ")))
}

// lineStart returns the place of the first character of the line at the cursor.
func (a *Area) lineStart() int {
	at := a.at
	for at > 0 && a.text[at-1] != '\n' {
		at--
	}
	return at
}

// lineEnd returns the place after the last character of the line at the cursor.
func (a *Area) lineEnd() int {
	at := a.at
	for at < len(a.text) && a.text[at] != '\n' {
		at++
	}
	return at
}

// row is the part of the text on one row: from the character from to before the character to.
type row struct{ from, to int }

// rows returns the rows of the text. A line that is longer than a row continues on the next one, if possible
// with a whole word.
func (a *Area) rows(width int) []row {
	rows := []row{{0, 0}}
	used, word := 0, 0 // the cells of the row, and where its last word begins
	for i, r := range a.text {
		last := &rows[len(rows)-1]
		if r == '\n' {
			last.to = i
			rows, used, word = append(rows, row{i + 1, i + 1}), 0, i+1
			continue
		}
		w := term.Width(string(r))
		if used+w > width && i > last.from {
			from := word
			if word == last.from { // the word is longer than a row
				from = i
			}
			last.to = from
			rows, used, word = append(rows, row{from, from}), term.Width(string(a.text[from:i])), from
		}
		used += w
		if r == ' ' {
			word = i + 1
		}
		rows[len(rows)-1].to = i + 1
	}
	return rows
}

// place returns the row of the cursor among rows.
func (a *Area) place(rows []row) int {
	at := 0
	for i := range rows {
		if rows[i].from <= a.at {
			at = i
		}
	}
	return at
}

// move moves the cursor by a row, and reports whether there is one.
func (a *Area) move(by int) bool {
	rows := a.rows(a.width)
	at := a.place(rows)
	next := at + by
	if next < 0 || next >= len(rows) {
		return false
	}
	column := term.Width(string(a.text[rows[at].from:a.at]))
	a.at = rows[next].from
	for a.at < rows[next].to && term.Width(string(a.text[rows[next].from:a.at+1])) <= column {
		a.at++
	}
	if a.at == rows[next].to && next+1 < len(rows) && rows[next+1].from == a.at && a.at > rows[next].from {
		a.at-- // after its last character the cursor would be in the row below
	}
	return true
}

// Draw returns at most height rows around the cursor. The first one stands after a label, and the others
// below its text.
func (a *Area) Draw(label string, width, height int) []cell.Line {
	head := term.Width(label)
	a.width = max(width-head-1, 1)
	rows := a.rows(a.width)
	at := a.place(rows)
	a.top = max(min(min(a.top, at), len(rows)-height), at-height+1, 0)
	lines := []cell.Line{}
	for i := a.top; i < min(a.top+height, len(rows)); i++ {
		line := cell.Of(cell.Bold, label)
		if i > a.top {
			line = cell.Of(cell.Plain, strings.Repeat(" ", head))
		}
		lines = append(lines, a.drawRow(line, rows[i], i == at))
	}
	return lines
}

func (a *Area) drawRow(line cell.Line, r row, cursor bool) cell.Line {
	if !cursor {
		return line.Add(cell.Plain, string(a.text[r.from:r.to]))
	}
	line = line.Add(cell.Plain, string(a.text[r.from:a.at]))
	if a.at >= r.to {
		return line.Add(cell.Reversed, " ")
	}
	return line.Add(cell.Reversed, string(a.text[a.at])).Add(cell.Plain, string(a.text[a.at+1:r.to]))
}
