package diff

import (
	"strings"
	"testing"

	"agency/internal/cli/term"
)

// A line is cut between characters, however wide they are, and no part of it is lost.
func TestText(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"", "ascii only", "a\tb\t界", strings.Repeat("x界🎉é", 900), strings.Repeat("界", 2000), "e\u0301界\u200b👩‍👩‍👧!"} {
		x := newText("a.txt", line)
		for _, room := range []int{1, 2, 7, 80} {
			joined := ""
			for i := range x.rows(room) {
				from, to := x.row(i, room)
				if w := term.Width(x.whole[from:to]); w > max(room, 2) {
					t.Errorf("%.20q: row %d has %d cells, want at most %d", line, i, w, room)
				}
				if from < to && x.rowAt(from, room) != i {
					t.Errorf("%.20q: byte %d is in row %d, want %d", line, from, x.rowAt(from, room), i)
				}
				joined += x.whole[from:to]
			}
			if joined != x.whole {
				t.Errorf("%.20q in rows of %d: %q", line, room, joined)
			}
		}
		for _, cell := range []int{0, 1, 2, 3, 1023, 1024, 1025, 1026, 3000, 1, 5000, 2049} {
			offset, right := x.at(cell)
			if w := term.Width(x.whole[:offset]); w != min(cell+right, x.cells) || right > 1 {
				t.Errorf("%.20q: cell %d is at byte %d, which is %d cells from the beginning and %d right", line, cell, offset, w, right)
			}
		}
	}
}
