package page

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"agency/internal/tui/cell"
)

// Text is what a pane shows.
type Text struct {
	Of       string // identifies the text: if it changes, the pane scrolls to the top
	Lines    []cell.Line
	From, To int // the rows from From to before To stay visible as far as possible
}

// Pane is the part of a page below its list, with a text that scrolls.
type Pane struct {
	of          string
	top, height int
}

// Keys returns the keys that scroll the pane.
func (p *Pane) Keys(group string) []Binding {
	scroll := func(step int) func(string) tea.Cmd {
		return Do(func() { p.top += step * max(p.height/2, 1) })
	}
	return []Binding{
		{Name: "scroll-down", Keys: []string{"J", "shift+down"}, Shown: "J", Does: "scroll down what is below the list", Group: group, Act: scroll(1)},
		{Name: "scroll-up", Keys: []string{"K", "shift+up"}, Shown: "K", Does: "scroll up what is below the list", Group: group, Act: scroll(-1)},
	}
}

// Draw returns the visible part of the text, below a rule that shows which part it is.
func (p *Pane) Draw(text Text, width, height int) []cell.Line {
	if height < 1 {
		return nil
	}
	rows := len(text.Lines)
	p.height = height - 1
	if text.Of != p.of {
		p.of, p.top = text.Of, 0
	}
	if text.From < text.To {
		a, b := text.From, text.To-p.height
		p.top = min(max(p.top, min(a, b)), max(a, b))
	}
	p.top = max(min(p.top, rows-p.height), 0)
	last := min(p.top+p.height, rows)
	rule := strings.Repeat("─", width)
	if place := fmt.Sprintf(" %d-%d of %d ", p.top+1, last, rows); last-p.top < rows && p.height > 0 && len(place)+2 <= width {
		rule = strings.Repeat("─", width-len(place)-2) + place + "──"
	}
	return Fill(append([]cell.Line{cell.Of(cell.Dim, rule)}, text.Lines[p.top:last]...), width, height)
}
