package diff

import (
	tea "charm.land/bubbletea/v2"

	"agency/internal/cli/term"
	"agency/internal/tui/field"
	"agency/internal/tui/page"
)

func (p *Page) startSearch() { p.typing, p.field = search, field.New("") }

// find moves the cursor to the next row that has a text, or that of the last search when it is
// empty.
func (p *Page) find(text string) tea.Cmd {
	if text == "" {
		text = p.sought
	}
	if text == "" {
		return nil
	}
	p.sought = text
	has, f := page.Finder(text), &p.file
	for i := range f.rows {
		at := (f.cursor + 1 + i) % len(f.rows)
		if has(f.rows[at].words()) {
			f.cursor = at
			return nil
		}
	}
	return p.desk.Say(term.SafeLine(text) + " is not in what is shown of this file")
}

// words returns the text of a row.
func (r *row) words() string {
	words := r.text
	if r.old != nil {
		words += r.old.Text
	}
	if r.new != nil && r.new != r.old {
		words += "\n" + r.new.Text
	}
	return words
}

// copy puts the line at the cursor, as it is now or else as it was, into the clipboard of the
// terminal, where the terminal allows that.
func (p *Page) copy() tea.Cmd {
	if p.file.cursor >= len(p.file.rows) {
		return nil
	}
	r := &p.file.rows[p.file.cursor]
	text := r.text
	switch {
	case r.new != nil:
		text = r.new.Text
	case r.old != nil:
		text = r.old.Text
	}
	return tea.Batch(tea.SetClipboard(term.SafeLine(text)), p.desk.Say("the line is handed to the terminal to copy"))
}
