package diff

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"agency/internal/cli/term"
	"agency/internal/diffview"
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
			f.reveal(text)
			return nil
		}
	}
	return p.desk.Say(term.SafeLine(text) + " is not in what is shown of this file")
}

// reveal scrolls sideways to a text in the row of the cursor, where it is out of sight.
func (f *file) reveal(text string) {
	r, has := &f.rows[f.cursor], page.Finder(text)
	for _, l := range []*diffview.Line{r.new, r.old} {
		if l == nil || !has(l.Text) {
			continue
		}
		line := expand(term.SafeText(l.Text))
		before := max(strings.Index(strings.ToLower(line), strings.ToLower(text)), 0)
		from, width := term.Width(line[:min(before, len(line))]), term.Width(text)
		if from < f.left || from+width > f.left+f.room {
			f.left = max(from+width-f.room/2, 0)
		}
		if from+width <= f.room {
			f.left = 0
		}
		return
	}
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
