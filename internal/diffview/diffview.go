// Package diffview reads a patch into hunks and lines, pairs the lines of both sides, and colours
// code by a small lexer. It is pure, and every interface uses it.
package diffview

import (
	"strconv"
	"strings"
)

// Kind is what a change did to a line: it kept, added or deleted the line.
type Kind byte

// The kinds of line.
const (
	Same    Kind = ' '
	Added   Kind = '+'
	Deleted Kind = '-'
	Note    Kind = '\\' // a remark of git about the line before
)

// Line is a line of a hunk. Its text is untrusted.
type Line struct {
	Kind     Kind
	Old, New int // its number on each side; 0 on a side without it
	Text     string
}

// Hunk is a part of a file that changed.
type Hunk struct {
	Header string // the text after the numbers: the function, if git knows it
	Old    int    // the first line of each side
	New    int
	Lines  []Line
}

// Parse returns the hunks of the patch of one file. notes are lines before the first hunk: modes, renames, and
// that the file is binary.
func Parse(patch string) (hunks []Hunk, notes []string) {
	before, after := 0, 0
	for line := range strings.Lines(patch) {
		line = strings.TrimSuffix(line, "\n")
		if h, ok := header(line); ok {
			hunks, before, after = append(hunks, h), h.Old, h.New
			continue
		}
		if len(hunks) == 0 {
			if noteworthy(line) {
				notes = append(notes, line)
			}
			continue
		}
		h := &hunks[len(hunks)-1]
		if line == "" {
			line = " " // a program may have cut off the space
		}
		l := Line{Kind: Kind(line[0]), Text: line[1:]}
		switch l.Kind {
		case Added:
			l.New, after = after, after+1
		case Deleted:
			l.Old, before = before, before+1
		case Note:
		case Same:
			l.Old, l.New, before, after = before, after, before+1, after+1
		default:
			return hunks, notes // the patch of another file begins
		}
		h.Lines = append(h.Lines, l)
	}
	return hunks, notes
}

// noteworthy reports whether a line above the hunks has more than the names of the file.
func noteworthy(line string) bool {
	for _, prefix := range []string{"diff --git ", "index ", "--- ", "+++ "} {
		if strings.HasPrefix(line, prefix) {
			return false
		}
	}
	return line != ""
}

// header reads the first line of a hunk: @@ -1,2 +3,4 @@ func.
func header(line string) (Hunk, bool) {
	rest, ok := strings.CutPrefix(line, "@@ -")
	if !ok {
		return Hunk{}, false
	}
	numbers, text, ok := strings.Cut(rest, " @@")
	before, after, also := strings.Cut(numbers, " +")
	if !ok || !also {
		return Hunk{}, false
	}
	first := func(span string) int {
		span, _, _ = strings.Cut(span, ",")
		n, err := strconv.Atoi(span)
		if err != nil {
			return 0
		}
		return n
	}
	return Hunk{Header: strings.TrimSpace(text), Old: first(before), New: first(after)}, true
}

// Pair is a row with a line of each side; nil on a side without one.
type Pair struct{ Old, New *Line }

// Pairs returns the lines of a hunk side by side: deleted lines beside the lines that were added in their
// place.
func (h *Hunk) Pairs() []Pair {
	pairs := []Pair{}
	for i := 0; i < len(h.Lines); {
		if l := &h.Lines[i]; l.Kind == Same || l.Kind == Note {
			pairs = append(pairs, Pair{l, l})
			i++
			continue
		}
		went, came := []*Line{}, []*Line{}
		for ; i < len(h.Lines) && h.Lines[i].Kind != Same; i++ {
			switch l := &h.Lines[i]; l.Kind {
			case Deleted:
				went = append(went, l)
			case Added:
				came = append(came, l)
			default: // a note of git is not shown side by side
			}
		}
		for n := range max(len(went), len(came)) {
			p := Pair{}
			if n < len(went) {
				p.Old = went[n]
			}
			if n < len(came) {
				p.New = came[n]
			}
			pairs = append(pairs, p)
		}
	}
	return pairs
}
