package diff

import (
	"sort"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"agency/internal/cli/term"
	"agency/internal/diffview"
)

// text is a line of code as it is drawn: safe for a terminal, without tabs.
type text struct {
	whole  string
	tokens []diffview.Token
	cells  int    // its width
	narrow bool   // each byte is one cell
	marks  []mark // of a text that is not narrow

	wraps []int // where each row of the wrapped text begins, unless the text is narrow
	room  int   // the width that wraps are for
}

// mark is a place in a text, in bytes and in cells from its beginning. A text gets one for each markCells
// that at has passed, so that at need not begin at the beginning of a long line each time.
type mark struct{ offset, cell int }

const markCells = 1024

// newText returns the text of a line. name is that of its file.
func newText(name, line string) *text {
	t := &text{whole: expand(line), marks: make([]mark, 1)}
	t.tokens, t.cells = diffview.Lex(name, t.whole), term.Width(t.whole)
	t.narrow = strings.IndexFunc(t.whole, func(r rune) bool { return r < ' ' || r > '~' }) < 0
	return t
}

// expand returns an untrusted text that is safe for a terminal, with spaces in place of tabs.
func expand(line string) string { return strings.ReplaceAll(term.SafeText(line), "\t", "    ") }

// at returns the byte at which the first character at or right of a cell begins. right is how many cells
// right of the cell that is: 1 if the cell is the second half of a wide character, else 0.
func (t *text) at(cell int) (offset, right int) {
	if t.narrow {
		return min(cell, len(t.whole)), 0
	}
	m := t.marks[min(cell/markCells, len(t.marks)-1)]
	for m.cell < cell && m.offset < len(t.whole) {
		n, cells := character(t.whole[m.offset:])
		m.offset, m.cell = m.offset+n, m.cell+cells
		if len(t.marks)*markCells <= m.cell {
			t.marks = append(t.marks, m)
		}
	}
	return m.offset, max(m.cell-cell, 0)
}

// character returns how many bytes and cells the first character of a text has.
func character(text string) (bytes, cells int) {
	c, cells := ansi.FirstGraphemeCluster(text, ansi.GraphemeWidth)
	return max(len(c), 1), cells
}

// rows returns how many rows of a width the wrapped text has.
func (t *text) rows(room int) int {
	if t.narrow {
		return max((len(t.whole)+room-1)/room, 1)
	}
	t.wrap(room)
	return len(t.wraps)
}

// row returns where a row of the wrapped text begins and ends.
func (t *text) row(i, room int) (from, to int) {
	if t.narrow {
		return min(i*room, len(t.whole)), min((i+1)*room, len(t.whole))
	}
	t.wrap(room)
	switch {
	case i >= len(t.wraps):
		return len(t.whole), len(t.whole)
	case i == len(t.wraps)-1:
		return t.wraps[i], len(t.whole)
	default:
		return t.wraps[i], t.wraps[i+1]
	}
}

// rowAt returns the row of the wrapped text that has a byte.
func (t *text) rowAt(offset, room int) int {
	return sort.Search(t.rows(room)-1, func(i int) bool {
		_, to := t.row(i, room)
		return offset < to
	})
}

// wrap finds the rows for a width. A character that does not fit begins the next row.
func (t *text) wrap(room int) {
	if t.room == room {
		return
	}
	t.wraps, t.room = append(t.wraps[:0], 0), room
	column := 0
	for offset := 0; offset < len(t.whole); {
		n, cells := character(t.whole[offset:])
		if column+cells > room && column > 0 {
			t.wraps, column = append(t.wraps, offset), 0
		}
		offset, column = offset+n, column+cells
	}
}
