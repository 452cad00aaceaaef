package page

import (
	tea "charm.land/bubbletea/v2"

	"agency/internal/tui/cell"
)

// Cursor is a place in a list of rows.
type Cursor struct {
	At, top, height int
}

// Keep keeps the cursor inside a list of so many rows.
func (c *Cursor) Keep(rows int) { c.At = min(max(c.At, 0), max(rows-1, 0)) }

// Keys returns the keys that move the cursor; moved, if it is not nil, follows each.
func (c *Cursor) Keys(group, noun string, rows func() int, moved func(string) tea.Cmd) []Binding {
	to := func(at func() int) func(string) tea.Cmd {
		return func(key string) tea.Cmd {
			c.At = at()
			c.Keep(rows())
			if moved == nil {
				return nil
			}
			return moved(key)
		}
	}
	return []Binding{
		{Name: "down", Keys: []string{"j", "down"}, Shown: "j, down", Does: "the next " + noun, Group: group, Act: to(func() int { return c.At + 1 })},
		{Name: "up", Keys: []string{"k", "up"}, Shown: "k, up", Does: "the " + noun + " before", Group: group, Act: to(func() int { return c.At - 1 })},
		{Name: "half-down", Keys: []string{"ctrl+d", "pgdown"}, Shown: "ctrl-d", Does: "half a page down", Group: group, Act: to(func() int { return c.At + max(c.height/2, 1) })},
		{Name: "half-up", Keys: []string{"ctrl+u", "pgup"}, Shown: "ctrl-u", Does: "half a page up", Group: group, Act: to(func() int { return c.At - max(c.height/2, 1) })},
		{Name: "first", Keys: []string{"g", "home"}, Shown: "g", Does: "the first " + noun, Group: group, Act: to(func() int { return 0 })},
		{Name: "last", Keys: []string{"G", "end"}, Shown: "G", Does: "the last " + noun, Group: group, Act: to(rows)},
	}
}

// Draw returns the visible rows, the one of the cursor reversed.
func (c *Cursor) Draw(width, height, rows int, draw func(i int) cell.Line) []cell.Line {
	c.height = height
	c.Keep(rows)
	c.top = Scroll(c.top, c.At, height, rows)
	lines := make([]cell.Line, 0, height)
	for i := c.top; i < rows && len(lines) < height; i++ {
		if i == c.At {
			lines = append(lines, append(cell.Of(cell.Bold, ">"), draw(i)...).Fit(width).All(cell.With(cell.Reversed, "b")))
			continue
		}
		lines = append(lines, append(cell.Of(cell.Plain, " "), draw(i)...).Fit(width))
	}
	return Fill(lines, width, height)
}
