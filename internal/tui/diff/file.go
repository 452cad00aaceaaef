package diff

import (
	"agency"
	"agency/internal/diffview"
	"agency/internal/tui/cell"
)

// file is the file that the user reads: its lines and the cursor in them.
type file struct {
	path      string
	hunks     []diffview.Hunk
	notes     []string
	truncated bool
	look      look

	rows     []row
	arranged bool // rows fit the hunks, the comments and the look
	two      bool // rows are pairs of lines, in two columns
	width    int  // of the rows
	near     near // the place of the cursor before the rows were made again
	texts    map[*diffview.Line]*text

	cursor spot
	top    spot
	height int
	room   int // how many cells the code has
	left   int // how many cells of the code are left of the screen
	found  found
}

// look is how the user wants to see the lines of all files.
type look struct {
	unified bool // one column
	wrapped bool // long lines continue on the next row
}

// row is the header of a hunk, a line, a pair of lines, or a text about them.
type row struct {
	hunk     bool
	old, new *diffview.Line
	text     cell.Line           // the header or the text
	comment  *agency.LineComment // the comment with the text
}

// spot is a row of the screen: a row of the file and, if that is wrapped, one of its parts.
type spot struct{ row, part int }

// before reports whether the spot is above another.
func (s spot) before(other spot) bool {
	return s.row < other.row || s.row == other.row && s.part < other.part
}

// place is a line of a file, which a comment can be about.
type place struct {
	path string
	line int
	old  bool // the number is that of the old side
}

// place returns the line of a row: the new one or, if there is none, the old one.
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

// textOf returns the text of a line. It makes the text only when the line is visible first.
func (f *file) textOf(l *diffview.Line) *text {
	t := f.texts[l]
	if t == nil {
		t = newText(f.path, l.Text)
		f.texts[l] = t
	}
	return t
}

// parts returns how many rows of the screen a row of the file has.
func (f *file) parts(at int) int {
	parts := 1
	if f.look.wrapped {
		for _, l := range f.rows[at].lines() {
			parts = max(parts, f.textOf(l).rows(f.room))
		}
	}
	return parts
}

// lines returns the lines of a row. A line that both sides have is there once.
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

// step returns the spot by rows below another; a negative by is above. It stops at the first and the last
// spot.
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

// move moves the cursor by rows of the screen.
func (f *file) move(by int) { f.cursor = f.step(f.cursor, by) }

// end returns the last spot of the file.
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
			f.top = f.cursor // as much of the hunk as possible is visible
			return
		}
	}
}

// scroll makes the cursor visible. It looks at no more rows than the screen has.
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

// keep returns the spot that is nearest to one that may not be there now.
func (f *file) keep(s spot) spot {
	if s.row >= len(f.rows) {
		return f.end()
	}
	return spot{s.row, min(s.part, f.parts(s.row)-1)}
}

// sideways moves the code by half of its cells, and reports whether the visible lines have code on that
// side.
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

// wrap wraps long lines, or cuts them off again. The visible part of the line at the cursor stays visible.
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
