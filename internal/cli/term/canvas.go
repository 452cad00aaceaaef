package term

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Canvas is the part of a terminal above the cursor that a watching command keeps up to date.
type Canvas struct {
	lines   []string // as painted
	columns int      // of the terminal when they were painted
	rows    int
}

// Clear erases the list, so that another program can write in its place. The next Paint begins
// below the output of that program.
func (c *Canvas) Clear(out io.Writer) {
	if up := len(c.lines); up > 0 {
		_, _ = fmt.Fprintf(out, "\x1b[%dA", up)
	}
	_, _ = io.WriteString(out, "\r\x1b[J")
	c.Forget()
}

// Forget makes the next Paint begin below the output of another program.
func (c *Canvas) Forget() { *c = Canvas{} }

// Paint writes to out, which leads to the terminal. It rewrites the lines that differ, from the
// first line of the list above the cursor, and does not touch the others. A terminal whose size has
// changed has moved its text in its own way, so there Paint writes the list over it from the top.
// lines returns as many lines as fit above the last of this many rows, which is for below.
func (c *Canvas) Paint(terminal, out io.Writer, lines func(rows int) []string, below string) {
	columns, rows := Size(terminal)
	var b strings.Builder
	if columns != c.columns || rows != c.rows {
		if c.columns > 0 {
			b.WriteString("\x1b[H")
		}
		c.lines, c.columns, c.rows = nil, columns, rows
	}
	painted := lines(rows)
	for i := range painted {
		painted[i] = ansi.Truncate(painted[i], columns, "…")
	}
	if c.lines != nil && slices.Equal(painted, c.lines) {
		return
	}
	if up := len(c.lines); up > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", up)
	}
	for i, line := range painted {
		if i < len(c.lines) && c.lines[i] == line {
			b.WriteString("\n")
			continue
		}
		b.WriteString("\r" + line + "\x1b[K\n")
	}
	b.WriteString("\x1b[J" + Fit(below, columns-1))
	c.lines = painted
	_, _ = io.WriteString(out, b.String())
}
