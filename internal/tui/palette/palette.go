// Package palette is the list of all commands, from which the user chooses one by letters of its words.
package palette

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"agency/internal/cli/term"
	"agency/internal/tui/cell"
	"agency/internal/tui/field"
	"agency/internal/tui/page"
	"agency/internal/view"
)

// Palette is a list of commands that shrinks while the user types.
type Palette struct {
	table []page.Binding
	found []*page.Binding // those with the letters that the user typed
	field field.Field
	at    int // the command at the cursor, in found
	top   int // the first visible one
}

// New returns the palette of a table of keys. It leaves out a binding whose keys do different things.
func New(table []page.Binding) *Palette {
	p := &Palette{table: table}
	p.find()
	return p
}

// Press handles a key. If done is true, the palette closes, and chosen is the chosen command or nil.
func (p *Palette) Press(key tea.KeyPressMsg) (chosen *page.Binding, done bool) {
	switch key.String() {
	case "esc":
		return nil, true
	case "enter":
		if p.at < len(p.found) {
			chosen = p.found[p.at]
		}
		return chosen, true
	case "down", "ctrl+n", "tab":
		p.at = min(p.at+1, max(len(p.found)-1, 0))
	case "up", "ctrl+p", "shift+tab":
		p.at = max(p.at-1, 0)
	default:
		p.field.Press(key)
		p.find()
	}
	return nil, false
}

// Paste types a text.
func (p *Palette) Paste(text string) {
	p.field.Insert(text)
	p.find()
}

// find finds the commands with the letters that the user typed. The command with that key or name comes first,
// so that :q quits, and then come those that contain the typed text.
func (p *Palette) find() {
	p.found, p.at = nil, 0
	typed := strings.TrimSpace(p.field.Text())
	want := strings.ToLower(typed)
	worded, loose := []*page.Binding{}, []*page.Binding{}
	for i := range p.table {
		b := &p.table[i]
		text := strings.ToLower(b.Does)
		switch {
		case b.Name == "" && len(b.Keys) > 4:
		case b.Has(typed) || b.Name == want && want != "":
			p.found = append(p.found, b)
		case strings.Contains(text, want):
			worded = append(worded, b)
		case page.InOrder(strings.ReplaceAll(want, " ", ""), text):
			loose = append(loose, b)
		}
	}
	p.found = append(append(p.found, worded...), loose...)
}

// Draw returns the rows of the found commands.
func (p *Palette) Draw(width, height int) []cell.Line {
	lines := make([]cell.Line, 0, height)
	p.top = page.Scroll(p.top, p.at, height, len(p.found))
	for i := p.top; i < len(p.found) && len(lines) < height; i++ {
		lead := "  "
		if i == p.at {
			lead = "> "
		}
		line := cell.Of(cell.Bold, lead).Add(cell.Coloured(view.Cyan), term.Pad(p.found[i].Shown, 9)+" ").Add(cell.Plain, p.found[i].Does).Fit(width)
		if i == p.at {
			line = line.All(cell.With(cell.Reversed, "b"))
		}
		lines = append(lines, line)
	}
	if len(p.found) == 0 {
		lines = append(lines, cell.Of(cell.Dim, "  no command has these letters"))
	}
	return page.Fill(lines, width, height)
}

// Typing returns the row on which the user types.
func (p *Palette) Typing(width int) cell.Line { return p.field.Draw(":", width) }
