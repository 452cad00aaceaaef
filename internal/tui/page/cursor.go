package page

import (
	tea "charm.land/bubbletea/v2"

	"agency/internal/tui/cell"
)

// Cursor is a place in a list of rows, which a page draws.
type Cursor struct {
	At       int  // the row
	Height   int  // how many rows are visible
	Inactive bool // the keys move another cursor

	top int // the first visible row
}

// Keep keeps the cursor in a list with a number of rows.
func (c *Cursor) Keep(rows int) { c.At = min(max(c.At, 0), max(rows-1, 0)) }

// MoveKeys returns the keys that move a cursor. now returns that cursor and how many rows its list has. moved,
// if it is not nil, is called after each move.
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

// Row returns a row of the list. The row of the cursor is reversed or, while the keys move another cursor,
// bold.
func (c *Cursor) Row(i int, line cell.Line, width int) cell.Line {
	switch {
	case i != c.At:
		return append(cell.Of(cell.Plain, " "), line...).Fit(width)
	case c.Inactive:
		return append(cell.Of(cell.Bold, ">"), line...).Fit(width).All(cell.Bold)
	default:
		return append(cell.Of(cell.Bold, ">"), line...).Fit(width).All(cell.With(cell.Reversed, "b"))
	}
}
