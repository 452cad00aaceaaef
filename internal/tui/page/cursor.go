package page

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"agency/internal/cli/term"
	"agency/internal/tui/cell"
	"agency/internal/view"
)

// Cursor is a place in a list of rows.
type Cursor struct {
	At     int
	Height int  // how many rows are visible
	Away   bool // the keys move another cursor

	top int
}

// Keep keeps the cursor inside a list of so many rows.
func (c *Cursor) Keep(rows int) { c.At = min(max(c.At, 0), max(rows-1, 0)) }

// MoveKeys returns the keys that move the cursor that now returns, in its list of so many rows;
// moved, if it is not nil, follows each.
func MoveKeys(group, noun string, now func() (c *Cursor, rows int), moved func(string) tea.Cmd) []Binding {
	to := func(at func(c *Cursor, rows int) int) func(string) tea.Cmd {
		return func(key string) tea.Cmd {
			c, rows := now()
			c.At = at(c, rows)
			c.Keep(rows)
			if moved == nil {
				return nil
			}
			return moved(key)
		}
	}
	by := func(step int) func(string) tea.Cmd {
		return to(func(c *Cursor, _ int) int { return c.At + step })
	}
	half := func(step int) func(string) tea.Cmd {
		return to(func(c *Cursor, _ int) int { return c.At + step*max(c.Height/2, 1) })
	}
	return []Binding{
		{Name: "down", Keys: []string{"j", "down"}, Shown: "j, down", Does: "the next " + noun, Group: group, Act: by(1)},
		{Name: "up", Keys: []string{"k", "up"}, Shown: "k, up", Does: "the " + noun + " before", Group: group, Act: by(-1)},
		{Name: "half-down", Keys: []string{"ctrl+d", "pgdown"}, Shown: "ctrl-d", Does: "half a page down", Group: group, Act: half(1)},
		{Name: "half-up", Keys: []string{"ctrl+u", "pgup"}, Shown: "ctrl-u", Does: "half a page up", Group: group, Act: half(-1)},
		{Name: "first", Keys: []string{"g", "home"}, Shown: "g", Does: "the first " + noun, Group: group, Act: to(func(*Cursor, int) int { return 0 })},
		{Name: "last", Keys: []string{"G", "end"}, Shown: "G", Does: "the last " + noun, Group: group, Act: to(func(_ *Cursor, rows int) int { return rows })},
	}
}

// Draw returns the visible rows, the one of the cursor reversed.
func (c *Cursor) Draw(width, height, rows int, draw func(i int) cell.Line) []cell.Line {
	c.Height = height
	c.Keep(rows)
	c.top = Scroll(c.top, c.At, height, rows)
	lines := make([]cell.Line, 0, height)
	for i := c.top; i < rows && len(lines) < height; i++ {
		lines = append(lines, c.Row(i, draw(i), width))
	}
	return Fill(lines, width, height)
}

// Row returns a row of the list as it is drawn: reversed at the cursor, and only bold there while
// the keys move another one.
func (c *Cursor) Row(i int, line cell.Line, width int) cell.Line {
	switch {
	case i != c.At:
		return append(cell.Of(cell.Plain, " "), line...).Fit(width)
	case c.Away:
		return append(cell.Of(cell.Bold, ">"), line...).Fit(width).All(cell.Bold)
	default:
		return append(cell.Of(cell.Bold, ">"), line...).Fit(width).All(cell.With(cell.Reversed, "b"))
	}
}

// Text is what a pane shows.
type Text struct {
	Of       string // what it is about: another text begins at its top
	Lines    []cell.Line
	From, To int // the rows from From to before To stay visible, as far as there is room
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

// Draw returns a rule, which says what part of the text is visible, and that part.
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

// factIndent is where the texts of facts begin.
const factIndent = 11

// Fact returns rows with a text, whole, behind what it is; none without a text.
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

// Shorten returns a name cut in its middle to a width: names that are shown together often differ
// only at their ends.
func Shorten(name string, width int) string {
	wide := term.Width(name)
	if wide <= width || width < 3 {
		return term.Fit(name, width)
	}
	tail := (width - 1) / 2
	return ansi.Truncate(name, width-1-tail, "") + ansi.TruncateLeft(name, wide-tail, "…")
}
