package diff

import (
	"regexp"
	"strings"

	tea "charm.land/bubbletea/v2"

	"agency/internal/cli/term"
	"agency/internal/tui/field"
)

// found is where a text was found last.
type found struct {
	row int
	end int // of the text, in the bytes of the words of the row
}

// startSearch begins the search for a text.
func (p *Page) startSearch() { p.typing, p.field = search, field.New("") }

// find moves the cursor to the next place that has a text. An empty text stands for that of the last search.
// Capital letters count only in a text that has some.
func (p *Page) find(text string) tea.Cmd {
	again := text == ""
	if again {
		text = p.sought
	}
	if text == "" {
		return nil
	}
	p.sought = text
	pattern := regexp.QuoteMeta(text)
	if strings.ToLower(text) == text {
		pattern = "(?i)" + pattern
	}
	if !p.file.find(regexp.MustCompile(pattern), again) {
		return p.desk.Say(term.SafeLine(text) + " is not in what is shown of this file")
	}
	return nil
}

// find moves the cursor to the next place that matches, and reports whether there is one. again also searches
// the row of the cursor, behind the place that was found there last.
func (f *file) find(sought *regexp.Regexp, again bool) bool {
	for i := range len(f.rows) + 1 {
		at, from := 0, 0
		if at = (f.cursor.row + i) % max(len(f.rows), 1); i == 0 {
			if !again || f.found.row != at || f.found.end == 0 {
				continue
			}
			from = f.found.end
		}
		words := ""
		if at < len(f.rows) {
			words = f.rows[at].words()
		}
		if match := sought.FindStringIndex(words[min(from, len(words)):]); match != nil {
			f.found = found{at, from + match[1]}
			f.cursor = spot{row: at}
			f.reveal(from+match[0], from+match[1])
			return true
		}
	}
	return false
}

// reveal moves the code, or the cursor in a wrapped line, so that the bytes from and before to of the words
// of the row at the cursor are visible.
func (f *file) reveal(from, to int) {
	lines := f.row().lines()
	if len(lines) == 0 {
		return
	}
	l := lines[0]
	if behind := len(l.Text) + 1; len(lines) == 2 && from >= behind {
		l, from, to = lines[1], from-behind, to-behind
	}
	t := f.textOf(l)
	before := expand(l.Text[:from])
	if f.look.wrapped {
		f.cursor.part = t.rowAt(len(before), f.room)
		return
	}
	first, last := term.Width(before), term.Width(expand(l.Text[:to]))
	if first < f.left || first == f.left && f.left > 0 || last >= f.left+f.room {
		f.left = max(last-f.room/2, 0)
		if last < f.room {
			f.left = 0
		}
	}
}

// words returns the text of a row, in which the user can find something.
func (r *row) words() string {
	words := []string{}
	for _, l := range r.lines() {
		words = append(words, l.Text)
	}
	for i := range r.text {
		words = append(words, r.text[i].Text)
	}
	return strings.Join(words, "\n")
}

// copy puts the line at the cursor into the clipboard of the terminal, if the terminal allows that: the new
// line or, if there is none, the old one.
func (p *Page) copy() tea.Cmd {
	r := p.file.row()
	if r == nil {
		return nil
	}
	text := r.text.Text()
	switch {
	case r.new != nil:
		text = r.new.Text
	case r.old != nil:
		text = r.old.Text
	case r.comment != nil:
		text = r.comment.Text
	}
	return tea.Batch(tea.SetClipboard(term.SafeLine(text)), p.desk.Say("the line is handed to the terminal to copy"))
}
