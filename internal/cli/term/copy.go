package term

import (
	"errors"
	"io"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"agency/internal/plain"
)

// CopySafe copies text and makes it safe for a terminal. It does not split an escape sequence or a
// character where a read ends. An escape sequence ends with its line at the latest, so that an
// unfinished one hides nothing else.
func CopySafe(w io.Writer, r io.Reader) error {
	var text []byte
	last := rune(0)
	show := func(r rune) {
		if plain.Shows(last, r) {
			text, last = utf8.AppendRune(text, r), r
		}
	}
	parser := ansi.NewParser()
	parser.SetHandler(ansi.Handler{Print: show, Execute: func(b byte) { show(rune(b)) }})
	chunk := make([]byte, 64<<10)
	for {
		n, err := r.Read(chunk)
		text = text[:0]
		for _, b := range chunk[:n] {
			if b == '\n' {
				parser.Reset()
			}
			parser.Advance(b)
		}
		if _, werr := w.Write(text); werr != nil {
			return werr
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}
