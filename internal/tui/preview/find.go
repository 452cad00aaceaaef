package preview

import (
	"strings"

	"agency/internal/tui/cell"
	"agency/internal/tui/page"
)

// Find scrolls to the next row with a text, and reports whether there is one. It begins after the row that was
// found last, else at the first visible row, and continues around the end. The row stays marked until Forget,
// or until the pane shows something else.
func (p *Pane) Find(text string) bool {
	has, rows, from := page.Finder(text), p.rows(), p.found
	if from == 0 {
		from = p.first()
	}
	for i := range rows {
		at := (from + i) % rows
		if !has(p.row(at).Text()) {
			continue
		}
		p.found = at + 1
		if first := p.first(); at < first || at >= first+p.height {
			p.ScrollBy(max(at-p.height/2, 0) - first)
		}
		return true
	}
	p.found = 0
	return false
}

// Forget ends the mark of what was found, and reports whether there was one.
func (p *Pane) Forget() (found bool) {
	found, p.found = p.found > 0, 0
	return found
}

// Visible returns the text of the row that was found, or else of all visible rows.
func (p *Pane) Visible() string {
	from, to := p.first(), min(p.first()+p.height, p.rows())
	if p.found > 0 {
		from, to = p.found-1, p.found
	}
	lines := []string{}
	for i := from; i < min(to, p.rows()); i++ {
		lines = append(lines, strings.TrimRight(p.row(i).Text(), " "))
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// rows returns how many rows the pane has, visible or not.
func (p *Pane) rows() int {
	if p.Tab == Screen {
		return len(p.Screen.Rows)
	}
	return len(p.Text)
}

// first returns the first visible row.
func (p *Pane) first() int {
	if p.Tab == Screen {
		return max(len(p.Screen.Rows)-p.Scroll-p.height, 0)
	}
	return p.Scroll
}

// row returns a row, safe to be drawn.
func (p *Pane) row(i int) cell.Line {
	if p.Tab != Screen {
		return p.Text[i]
	}
	line := make(cell.Line, 0, len(p.Screen.Rows[i]))
	for _, text := range p.Screen.Rows[i] {
		line = line.Add(text, text.Text)
	}
	return line
}

// marked returns a drawn row, reversed when it is the one that was found.
func (p *Pane) marked(i int, line cell.Line) cell.Line {
	if i+1 != p.found {
		return line
	}
	return line.All(cell.Reversed)
}
