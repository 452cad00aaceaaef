package diff

import (
	"fmt"
	"strings"

	"agency/internal/diffview"
	"agency/internal/tui/cell"
	"agency/internal/tui/page"
	"agency/internal/view"
)

// The widths at which the layout changes.
const (
	listColumns = 34  // the width of the files beside the lines
	listBeside  = 100 // the page has the files beside the lines, not above
	twoColumns  = 110 // the lines have both sides beside each other
)

// Draw implements page.Page.
func (p *Page) Draw(width, height int) []cell.Line {
	switch {
	case p.failed != "":
		return page.Fill(cell.Wrap(cell.Plain, p.failed, 2, width, 5), width, height)
	case !p.loaded:
		return page.Message("reading …", width, height)
	case len(p.list.List) == 0:
		return page.Message("nothing has changed", width, height)
	}
	if width >= listBeside {
		files, room := p.files(listColumns, height, true), width-listColumns-1
		lines := append([]cell.Line{cell.Of(cell.Bold, " "+fitEnd(p.file.path, room-1)).Fit(room)}, p.lines(room, max(height-1, 0))...)[:height]
		for i := range lines {
			lines[i] = append(append(files[i], cell.Of(cell.Dim, "│")...), lines[i]...)
		}
		return lines
	}
	above := min(len(p.list.List), max(height/4, 1))
	lines := append(p.files(width, above, false), cell.Of(cell.Dim, strings.Repeat("─", width)))
	return append(lines, p.lines(width, max(height-len(lines), 0))...)[:height]
}

// The cells left of the code: the number of a line, and the sign of its kind.
const (
	numberCells = 6
	signCells   = 1
)

// lines returns the visible rows of the file.
func (p *Page) lines(width, height int) []cell.Line {
	f := &p.file
	two := width >= twoColumns && !f.look.unified
	f.height, f.room = height, max(width-2*numberCells-signCells, 1)
	if two {
		f.room = (width-1)/2 - numberCells - signCells
	}
	f.arrange(width, two, p.comments)
	f.scroll()
	lines := make([]cell.Line, 0, height)
	for at := f.top; at.row < len(f.rows) && len(lines) < height; {
		line := f.draw(at, width)
		if at == f.cursor {
			line = line.All(cell.Reversed)
		}
		lines = append(lines, line)
		if at.part++; at.part >= f.parts(at.row) {
			at = spot{row: at.row + 1}
		}
	}
	return page.Fill(lines, width, height)
}

// draw draws a row of the screen.
func (f *file) draw(at spot, width int) cell.Line {
	r := &f.rows[at.row]
	if r.text != nil {
		return r.text.Fit(width)
	}
	if !f.two {
		l := r.lines()[0]
		return f.line(l, count(l.Old)+count(l.New), at.part, width)
	}
	half := (width - 1) / 2
	left, right := cell.Of(cell.Plain, ""), cell.Of(cell.Plain, "")
	if r.old != nil {
		left = f.line(r.old, count(r.old.Old), at.part, half)
	}
	if r.new != nil {
		right = f.line(r.new, count(r.new.New), at.part, width-half-1)
	}
	return append(append(left.Fit(half), cell.Of(cell.Dim, "│")...), right.Fit(width-half-1)...)
}

// count returns the number of a line in its cells.
func count(n int) string {
	if n == 0 {
		return strings.Repeat(" ", numberCells)
	}
	return fmt.Sprintf("%*d ", numberCells-1, n)
}

// line draws a line of code, or a part of it if it is wrapped. Added and deleted lines have a colour, and
// the words of the language a style.
func (f *file) line(l *diffview.Line, numbers string, part, width int) cell.Line {
	t := f.textOf(l)
	base := cell.Plain
	switch l.Kind {
	case diffview.Added:
		base = cell.Coloured(view.Green)
	case diffview.Deleted:
		base = cell.Coloured(view.Red)
	case diffview.Note:
		return cell.Of(cell.Dim, strings.Repeat(" ", len(numbers))+t.whole).Fit(width)
	case diffview.Same:
	}
	if part > 0 {
		if part >= t.rows(f.room) {
			return cell.Line{}.Fit(width)
		}
		numbers = strings.Repeat(" ", len(numbers))
	}
	line := cell.Of(cell.Dim, numbers).Add(cell.With(base, "b"), string(l.Kind))
	if f.look.wrapped {
		from, to := t.row(part, f.room)
		return t.draw(line, l.Kind, base, from, to).Fit(width)
	}
	from, right := t.at(f.left)
	if strings.TrimSpace(t.whole[:from]) != "" {
		from, right = t.at(f.left + 1)
		line = line.Add(cell.Dim, "…")
	}
	to, _ := t.at(f.left + width + 1) // beyond the edge, so that Fit shows that there is more
	return t.draw(line.Add(cell.Plain, strings.Repeat(" ", right)), l.Kind, base, from, to).Fit(width)
}

// draw adds the part of the text between two bytes to a row.
func (t *text) draw(line cell.Line, kind diffview.Kind, base cell.Style, from, to int) cell.Line {
	at := 0
	for _, token := range t.tokens {
		begin, end := max(at, from), min(at+len(token.Text), to)
		at += len(token.Text)
		if begin >= end {
			continue
		}
		style := base
		switch token.Sort {
		case diffview.Keyword:
			style = cell.With(base, "b")
		case diffview.String:
			if kind == diffview.Same {
				style = cell.Coloured(view.Yellow)
			}
		case diffview.Number:
			if kind == diffview.Same {
				style = cell.Coloured(view.Cyan)
			}
		case diffview.Comment:
			style = cell.With(base, "d")
		case diffview.Text:
		}
		line = line.Add(style, t.whole[begin:end])
	}
	return line
}

// Typing implements page.Page.
func (p *Page) Typing(width int) cell.Line {
	switch p.typing {
	case comment:
		return p.field.Draw(fmt.Sprintf("comment on %s:%d> ", fitEnd(p.about.place.path, 30), p.about.place.line), width)
	case search:
		return p.field.Draw("find> ", width)
	case nothing:
	}
	return nil
}
