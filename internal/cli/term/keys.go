package term

import (
	"bytes"
	"io"
	"os"

	"golang.org/x/term"
)

// Keys reads single keys from a terminal, one on request, so that no read is under way while
// another program has the terminal.
type Keys struct {
	Pressed chan string // j, enter, ctrl-c ...; closed at the end of the input

	in   *os.File
	was  *term.State
	want chan struct{}
}

// ReadKeys puts a terminal into raw mode and reads its keys, in the background until the process
// ends. It fails if in is not a terminal.
func ReadKeys(in *os.File) (*Keys, error) {
	was, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, err
	}
	k := &Keys{Pressed: make(chan string), in: in, was: was, want: make(chan struct{}, 1)}
	go func() {
		defer close(k.Pressed)
		piece := make([]byte, 16)
		for range k.want {
			n, err := in.Read(piece)
			if err != nil {
				return
			}
			k.Pressed <- keyName(piece[:n])
		}
	}()
	return k, nil
}

// keyName returns the name of a key by what a terminal sends for it.
func keyName(piece []byte) string {
	switch text := string(piece); text {
	case "\r", "\n":
		return "enter"
	case "\x03":
		return "ctrl-c"
	case "\x1b[A", "\x1bOA":
		return "k"
	case "\x1b[B", "\x1bOB":
		return "j"
	default:
		return text
	}
}

// Next asks for the next key, which comes on Pressed.
func (k *Keys) Next() { k.want <- struct{}{} }

// Release gives the terminal back to other programs, until Take. No key may be asked for.
func (k *Keys) Release() { _ = term.Restore(int(k.in.Fd()), k.was) }

// Take puts the terminal into raw mode again.
func (k *Keys) Take() { _, _ = term.MakeRaw(int(k.in.Fd())) }

// RawWriter writes lines to a terminal in raw mode, which does not return the carriage by itself.
type RawWriter struct{ W io.Writer }

// Write implements io.Writer.
func (r RawWriter) Write(p []byte) (int, error) {
	if _, err := r.W.Write(bytes.ReplaceAll(p, []byte("\n"), []byte("\r\n"))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Reversed returns a line without its colours, in reverse video.
func Reversed(line string) string { return "\x1b[7m" + SafeText(line) + "\x1b[0m" }
