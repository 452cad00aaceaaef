package diff

import (
	"agency"
	"agency/internal/diffview"
	"agency/internal/tui/cell"
)

// file is the part of the difference that is read: the lines of one file.
type file struct {
	path      string
	hunks     []diffview.Hunk
	notes     []string
	truncated bool
	look      look

	rows     []row
	arranged bool // rows are right
	two      bool // rows are pairs
	width    int  // of the rows
	near     near // where the cursor was before rows were thrown away
	texts    map[*diffview.Line]*text

	cursor spot
	top    spot
	height int
	room   int // cells of code beside each other
	left   int // cells of code that are left of the screen
	found  found
}

// look is how the user wants the lines of all files.
type look struct {
	unified bool // one column
	wrapped bool // long lines continue on the next row
}

// row is a hunk's header, a line or a pair of them, or a text about it.
type row struct {
	hunk     bool
	old, new *diffview.Line
	text     cell.Line           // unless it is a line
	comment  *agency.LineComment // that the text is of
}

// spot is a row of the screen: a row, and a part of it if it is wrapped.
type spot struct{ row, part int }

func (s spot) before(other spot) bool {
	return s.row < other.row || s.row == other.row && s.part < other.part
}

// place is a line that a comment is about.
type place struct {
	path string
	line int
	old  bool
}

// place returns the line of a row: as it is now or, where it is gone, as it was.
func (f *file) place(at int) (place, bool) {
	if at < 0 || at >= len(f.rows) {
		return place{}, false
	}
	r := &f.rows[at]
	switch {
	case r.new != nil && r.new.New > 0:
		return place{f.path, r.new.New, false}, true
	case r.old != nil && r.old.Old > 0:
		return place{f.path, r.old.Old, true}, true
	default:
		return place{}, false
	}
}

// row returns the row at the cursor, or nil.
func (f *file) row() *row {
	if f.cursor.row >= len(f.rows) {
		return nil
	}
	return &f.rows[f.cursor.row]
}

// textOf returns a line as it is drawn. Only lines that were visible have one.
func (f *file) textOf(l *diffview.Line) *text {
	t := f.texts[l]
	if t == nil {
		t = newText(f.path, l.Text)
		f.texts[l] = t
	}
	return t
}

// parts returns how many rows of the screen a row has.
func (f *file) parts(at int) int {
	parts := 1
	if f.look.wrapped {
		for _, l := range f.rows[at].lines() {
			parts = max(parts, f.textOf(l).rows(f.room))
		}
	}
	return parts
}

// lines returns the lines of a row, one that both sides have once.
func (r *row) lines() []*diffview.Line {
	switch {
	case r.old == nil && r.new == nil:
		return nil
	case r.old == nil || r.old == r.new:
		return []*diffview.Line{r.new}
	case r.new == nil:
		return []*diffview.Line{r.old}
	default:
		return []*diffview.Line{r.old, r.new}
	}
}

// step returns the row of the screen that is so many behind another, or before it; the first or the
// last one when there are fewer.
func (f *file) step(s spot, by int) spot {
	for by > 0 && s.row < len(f.rows) {
		last := f.parts(s.row) - 1
		if s.part+by <= last || s.row == len(f.rows)-1 {
			return spot{s.row, min(s.part+by, last)}
		}
		by -= last - s.part + 1
		s = spot{row: s.row + 1}
	}
	for by < 0 {
		if s.part+by >= 0 || s.row == 0 {
			return spot{s.row, max(s.part+by, 0)}
		}
		by += s.part + 1
		s = spot{s.row - 1, f.parts(s.row-1) - 1}
	}
	return s
}

func (f *file) move(by int) { f.cursor = f.step(f.cursor, by) }

// end returns the last row of the screen that the file has.
func (f *file) end() spot {
	if len(f.rows) == 0 {
		return spot{}
	}
	return spot{len(f.rows) - 1, f.parts(len(f.rows)-1) - 1}
}

// hunk moves the cursor to the next hunk, or to the one before.
func (f *file) hunk(step int) {
	for at := f.cursor.row + step; at >= 0 && at < len(f.rows); at += step {
		if f.rows[at].hunk {
			f.cursor = spot{row: at}
			f.top = f.cursor // it is seen whole where there is room
			return
		}
	}
}

// scroll makes the row of the cursor visible. It looks at no more rows than fit the screen.
func (f *file) scroll() {
	f.cursor, f.top = f.keep(f.cursor), f.keep(f.top)
	page := max(f.height, 1) - 1
	if f.cursor.before(f.top) {
		f.top = f.cursor
	}
	if least := f.step(f.cursor, -page); f.top.before(least) {
		f.top = least
	}
	if most := f.step(f.end(), -page); most.before(f.top) {
		f.top = most
	}
}

// keep returns the row of the screen that is nearest to one that may not be there now.
func (f *file) keep(s spot) spot {
	if s.row >= len(f.rows) {
		return f.end()
	}
	return spot{s.row, min(s.part, f.parts(s.row)-1)}
}

// sideways moves the code by half of its columns, and reports whether there is code on that side of
// the visible lines.
func (f *file) sideways(by int) bool {
	half := max(f.room/2, 1)
	if by < 0 {
		moves := f.left > 0
		f.left = max(f.left-half, 0)
		return moves
	}
	for at := f.top.row; at < min(f.top.row+f.height, len(f.rows)); at++ {
		for _, l := range f.rows[at].lines() {
			if f.textOf(l).cells > f.left+f.room {
				f.left += half
				return true
			}
		}
	}
	return false
}

// wrap wraps long lines, or cuts them off again. What was visible of the line at the cursor stays so.
func (f *file) wrap() {
	f.look.wrapped, f.cursor.part = !f.look.wrapped, 0
	r := f.row()
	if !f.look.wrapped || f.left == 0 || r == nil {
		return
	}
	for _, l := range r.lines() {
		t := f.textOf(l)
		offset, _ := t.at(f.left + f.room/2)
		f.cursor.part = max(f.cursor.part, t.rowAt(offset, f.room))
	}
}
