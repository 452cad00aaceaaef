// Package field is a text that a user edits on one row.
package field

import (
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"

	"agency/internal/cli/term"
	"agency/internal/tui/cell"
)

// Field is a text and the place in it where the next character goes.
type Field struct {
	text []rune
	at   int
}

// New returns a field with a text, and the cursor at its end.
func New(text string) Field {
	f := Field{text: []rune(text)}
	f.at = len(f.text)
	return f
}

// Text returns what the user typed.
func (f *Field) Text() string { return string(f.text) }

// Press handles a key, and reports whether the field used it.
func (f *Field) Press(key tea.KeyPressMsg) bool {
	switch key.String() {
	case "left", "ctrl+b":
		f.at = max(f.at-1, 0)
	case "right", "ctrl+f":
		f.at = min(f.at+1, len(f.text))
	case "home", "ctrl+a":
		f.at = 0
	case "end", "ctrl+e":
		f.at = len(f.text)
	case "backspace", "ctrl+h":
		f.remove(f.at - 1)
	case "delete", "ctrl+d":
		f.remove(f.at)
	case "ctrl+u":
		f.text, f.at = f.text[f.at:], 0
	case "ctrl+k":
		f.text = f.text[:f.at]
	case "ctrl+w", "alt+backspace":
		from := f.at
		for from > 0 && unicode.IsSpace(f.text[from-1]) {
			from--
		}
		for from > 0 && !unicode.IsSpace(f.text[from-1]) {
			from--
		}
		f.text = append(f.text[:from:from], f.text[f.at:]...)
		f.at = from
	default:
		if key.Text == "" {
			return false
		}
		f.Insert(key.Text)
	}
	return true
}

// Insert types a text at the cursor. A pasted text of several lines becomes one line.
func (f *Field) Insert(text string) {
	f.insert([]rune(strings.Join(strings.FieldsFunc(term.SafeText(text), func(r rune) bool { return r == '\n' || r == '\t' }), " ")))
}

func (f *Field) insert(added []rune) {
	f.text = append(f.text[:f.at:f.at], append(added, f.text[f.at:]...)...)
	f.at += len(added)
}

func (f *Field) remove(i int) {
	if i >= 0 && i < len(f.text) {
		f.text = append(f.text[:i:i], f.text[i+1:]...)
		f.at = i
	}
}

// Draw returns a row of a width with a label and the text or, if that is longer, its part before the cursor.
// The cursor is a reversed cell.
func (f *Field) Draw(label string, width int) cell.Line {
	line := cell.Of(cell.Bold, label)
	room := max(width-line.Width()-1, 1)
	from := 0
	for from < f.at && term.Width(string(f.text[from:f.at])) >= room {
		from++
	}
	line = line.Add(cell.Plain, string(f.text[from:f.at]))
	if f.at == len(f.text) {
		return line.Add(cell.Reversed, " ").Crop(width)
	}
	return line.Add(cell.Reversed, string(f.text[f.at])).Add(cell.Plain, string(f.text[f.at+1:])).Crop(width)
}
