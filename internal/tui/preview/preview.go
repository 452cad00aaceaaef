// Package preview draws what the pane shows of a run: its screen, its request, or a text about it.
package preview

import (
	"fmt"
	"strings"

	"agency"
	"agency/internal/tui/cell"
)

// Tab is what the pane shows of a run: its screen, or a text.
type Tab int

// The tabs, in their order.
const (
	Screen Tab = iota
	Files
	Why
	Log
	Messages
	Timeline
)

// Tabs returns all tabs.
func Tabs() []Tab { return []Tab{Screen, Files, Why, Log, Messages, Timeline} }

// String returns the name of a tab.
func (t Tab) String() string {
	return [...]string{"Screen", "Diff", "Why", "Log", "Messages", "Timeline"}[t]
}

// Next returns the tab some places after this one, around the end.
func (t Tab) Next(step int) Tab {
	n := len(Tabs())
	return Tab(((int(t)+step)%n + n) % n)
}

// Pane shows the chosen run: its screen, or the text of another tab.
type Pane struct {
	Run    agency.RunID // the run whose screen or text the pane has; empty before the first has come
	Tab    Tab
	Screen agency.Screen
	Text   []cell.Line
	Scroll int // how many rows a screen is scrolled up from its end, or a text down from its top

	height int // how many rows were drawn last
	found  int // the row that was found, from 1; 0 when none was
}

// Show replaces the screen.
func (p *Pane) Show(id agency.RunID, s *agency.Screen) {
	if p.Run != id || p.Tab != Screen {
		p.Scroll, p.found = 0, 0
	}
	if p.Scroll > 0 && p.Screen.Above > 0 && s.Above > 0 {
		p.Scroll = max(p.Scroll+len(s.Rows)-len(p.Screen.Rows), 0) // the visible rows stay in their place
	}
	p.Run, p.Screen, p.Text = id, *s, nil
}

// ShowText replaces the text of a tab.
func (p *Pane) ShowText(id agency.RunID, tab Tab, text []cell.Line) {
	atEnd := p.Scroll >= len(p.Text)-p.height
	if p.Run != id || p.Tab != tab {
		p.Scroll, p.found, atEnd = 0, 0, true
	}
	if tab == Log && atEnd { // a log stays at its end, where new lines come
		p.Scroll = max(len(text)-p.height, 0)
	}
	p.Run, p.Tab, p.Text, p.Screen = id, tab, text, agency.Screen{}
}

// Clear empties the pane for another run or tab.
func (p *Pane) Clear(tab Tab) { *p = Pane{Tab: tab, height: p.height} }

// ScrollBy scrolls by rows; up is negative.
func (p *Pane) ScrollBy(rows int) {
	if p.Tab == Screen {
		p.Scroll = min(max(p.Scroll-rows, 0), max(len(p.Screen.Rows)-p.height, 0))
		return
	}
	p.Scroll = min(max(p.Scroll+rows, 0), max(len(p.Text)-p.height, 0))
}

// AtTop reports whether the first row is shown.
func (p *Pane) AtTop() bool { return p.first() == 0 }

// Height returns how many rows were drawn last.
func (p *Pane) Height() int { return p.height }

// Draw returns the rows of the pane.
func (p *Pane) Draw(width, height int) []cell.Line {
	p.height = height
	lines := []cell.Line{}
	switch {
	case p.Run == "":
	case p.Tab == Screen:
		lines = p.screen(width, height)
	default:
		p.ScrollBy(0)
		for i := p.Scroll; i < min(p.Scroll+height, len(p.Text)); i++ {
			lines = append(lines, p.marked(i, p.Text[i].Fit(width)))
		}
	}
	for len(lines) < height {
		lines = append(lines, cell.Of(cell.Plain, "").Fit(width))
	}
	return lines
}

// screen returns the rows of the screen, cut off at the right. The pane never changes the size of the
// terminal that it shows.
func (p *Pane) screen(width, height int) []cell.Line {
	s := &p.Screen
	p.ScrollBy(0)
	last := len(s.Rows) - p.Scroll
	first := max(last-height, 0)
	lines := make([]cell.Line, 0, height)
	for i := first; i < last; i++ {
		line := p.row(i)
		if s.Cursor != nil && i == s.Above+s.Cursor.Row {
			line = withCursor(line, s.Cursor.Column)
		}
		lines = append(lines, p.marked(i, line.Crop(width)))
	}
	if len(s.Rows) == 0 {
		lines = append(lines, cell.Of(cell.Dim, " (nothing is shown)").Fit(width))
	}
	return lines
}

// withCursor returns a row with the cell of a column reversed.
func withCursor(line cell.Line, column int) cell.Line {
	if width := line.Width(); width <= column {
		return line.Add(cell.Plain, strings.Repeat(" ", column-width)).Add(cell.Reversed, " ")
	}
	drawn, at := make(cell.Line, 0, len(line)+2), 0
	for _, s := range line {
		width := cell.Line{s}.Width()
		if column < at || column >= at+width {
			drawn, at = append(drawn, s), at+width
			continue
		}
		for _, r := range s.Text {
			style := s
			style.Text = string(r)
			w := cell.Line{style}.Width()
			if at <= column && column < at+max(w, 1) && w > 0 {
				style.Attributes += "r"
			}
			drawn, at = append(drawn, style), at+w
		}
	}
	return drawn
}

// Position returns the place of a scrolled pane in words; empty at the end of a screen, and for a text that
// the pane shows whole.
func (p *Pane) Position() string {
	switch {
	case p.Tab == Screen && p.Scroll > 0:
		return fmt.Sprintf("%d rows up", p.Scroll)
	case p.Tab != Screen && len(p.Text) > p.height:
		return fmt.Sprintf("%d-%d of %d", p.Scroll+1, min(p.Scroll+p.height, len(p.Text)), len(p.Text))
	default:
		return ""
	}
}
