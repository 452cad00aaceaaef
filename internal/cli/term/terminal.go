// Package term writes text on a terminal and reads from it: safe text, columns and widths, a canvas
// that is repainted, prompts.
package term

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Columns reports whether w is a terminal, and how many columns it has.
func Columns(w io.Writer) (columns int, ok bool) {
	f, isFile := w.(*os.File)
	if !isFile || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil || columns <= 0 {
		columns = 80
	}
	return columns, true
}

// Size returns the size of the terminal w in cells; 80 by 24 when w is not a terminal, or does not
// know its size.
func Size(w io.Writer) (columns, rows int) {
	if f, ok := w.(*os.File); ok {
		columns, rows, _ = term.GetSize(int(f.Fd()))
	}
	if columns <= 0 || rows <= 0 {
		return 80, 24 // a terminal that does not know its size, such as a serial line
	}
	return columns, rows
}

// colours are the escape sequences of the colours by name.
var colours = map[string]string{"green": "\x1b[32m", "yellow": "\x1b[33m", "red": "\x1b[31m", "cyan": "\x1b[36m", "dim": "\x1b[2m"}

// Paint returns a text in a colour: green, yellow, red, cyan or dim.
func Paint(colour, text string) string { return colours[colour] + text + "\x1b[0m" }
