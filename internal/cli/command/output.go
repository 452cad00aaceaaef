package command

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/term"
)

// Output is where a command writes: text for users or, with --json, envelopes for programs.
type Output struct {
	Out *Writer // standard output
	// Terminal is standard output as the program got it, even when it is no terminal.
	Terminal io.Writer
	Err      io.Writer
	JSON     bool

	// Status is the exit status of a command that did its work, when it is not 0.
	Status int
	// Asks reports whether exit status 1 is an answer of the command. Then errors need another
	// status.
	Asks bool

	plain bool // never in colours

	screen  sync.Mutex
	passing string // the text that Passing has printed below what Paint paints
}

// NewOutput makes an output on out and err. The environment env can switch colours off.
func NewOutput(out, err io.Writer, env []string) *Output {
	return &Output{Out: &Writer{w: out}, Terminal: out, Err: err, plain: agency.Environ(env).Lookup("NO_COLOR") != "" || agency.Environ(env).Lookup("TERM") == "dumb"}
}

// Writer keeps the first error of a write and writes nothing after it, so that lost output cannot
// look like success.
type Writer struct {
	w       io.Writer
	written int64
	failed  error
}

// Failed returns the first error of a write.
func (w *Writer) Failed() error { return w.failed }

// Write implements io.Writer.
func (w *Writer) Write(p []byte) (int, error) {
	if w.failed != nil {
		return 0, w.failed
	}
	n, err := w.w.Write(p)
	w.written += int64(n)
	w.failed = err
	return n, err
}

// Print writes data as the one envelope, or calls text to write it for the user.
func (o *Output) Print(data any, text func(w io.Writer)) error {
	if !o.JSON {
		text(o.Out)
		return nil
	}
	return api.Encode(o.Out, api.Success(data))
}

// PrintLine writes data as an envelope on one line, for streams.
func (o *Output) PrintLine(data any) error {
	return api.EncodeLine(o.Out, api.Success(data))
}

// Chat writes a line for the user only, to standard error.
func (o *Output) Chat(format string, args ...any) {
	if !o.JSON {
		_, _ = fmt.Fprintf(o.Err, format+"\n", args...)
	}
}

// Fail prints an error, as text or as an envelope, and returns the exit status.
func (o *Output) Fail(e *agency.Error) int {
	exit := e.Code.Exit()
	if exit == agency.ExitError && o.Asks {
		exit = agency.ExitUnknown
	}
	if o.JSON && api.Encode(o.Out, api.Failure(e)) == nil {
		return exit
	}
	message, others := e.Message, ""
	if e.Details["problems"] != nil { // the hint belongs to the first problem
		message, others, _ = strings.Cut(message, "\n")
	}
	columns, _ := term.Columns(o.Err)
	_, _ = fmt.Fprintln(o.Err, wrapLines(fmt.Sprintf("agency: error: %s [%s]", term.SafeText(message), e.Code), columns))
	if e.Hint != "" {
		_, _ = fmt.Fprintf(o.Err, "agency: hint: %s\n", term.SafeText(e.Hint))
	}
	if others != "" {
		_, _ = fmt.Fprintln(o.Err, term.SafeText(others))
	}
	return exit
}

// wrapLines breaks the lines of a message that are too long for a terminal at spaces. It does not
// break a hint, so that a command in it can be copied.
func wrapLines(text string, columns int) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if columns > 0 && term.Width(line) > columns {
			lines[i] = term.Hang("", line, columns)
		}
	}
	return strings.Join(lines, "\n")
}

// Beside prints short texts for the user side by side, or one below the other when they have no
// room.
func (o *Output) Beside(texts ...string) {
	line := strings.Join(texts, "   ")
	if columns, ok := term.Columns(o.Err); ok && term.Width(line) > columns {
		line = strings.Join(texts, "\n")
	}
	o.Chat("%s", line)
}

// Colour reports whether standard output may have colours.
func (o *Output) Colour() bool {
	_, ok := term.Columns(o.Terminal)
	return ok && !o.plain
}

// TextTable aligns rows whose last cells are texts, within the columns of standard output.
func (o *Output) TextTable(rows [][]string) string {
	return strings.Join(term.TextRows(rows, o.Columns()), "\n") + "\n"
}

// Columns returns the columns of standard output when it is a terminal; otherwise 0, which is no
// limit.
func (o *Output) Columns() int {
	width, _ := term.Columns(o.Terminal)
	return width
}

// Warn prints warnings: problems that did not prevent the work of a command.
func (o *Output) Warn(warnings []string) {
	for _, text := range warnings {
		o.Chat("agency: note: %s", term.SafeLine(text))
	}
}

// Passing prints a text that is valid until the function that it returns is called. On a terminal
// the text stands at the cursor, below a list that Paint repaints up to the last row, and is
// removed afterwards.
func (o *Output) Passing(text string) (over func()) {
	if _, ok := term.Columns(o.Err); !ok || o.JSON {
		o.Chat("%s", text)
		return func() {}
	}
	o.pass(text)
	return func() { o.pass("") }
}

func (o *Output) pass(text string) {
	o.screen.Lock()
	defer o.screen.Unlock()
	columns, _ := term.Columns(o.Err)
	o.passing = text
	_, _ = io.WriteString(o.Err, "\r\x1b[2K"+term.Fit(text, columns-1))
}

// Paint paints a list in place on out, which leads to the terminal. What Passing has printed stays
// below it.
func (o *Output) Paint(canvas *term.Canvas, out io.Writer, lines func(rows int) []string) {
	o.screen.Lock()
	defer o.screen.Unlock()
	canvas.Paint(o.Terminal, out, lines, o.passing)
}

// Patch returns a patch with the colours of git on a terminal.
func (o *Output) Patch(patch string) string {
	if !o.Colour() {
		return patch
	}
	var painted strings.Builder
	inHunk := false
	for line := range strings.Lines(patch) {
		text, end := strings.CutSuffix(line, "\n")
		colour := ""
		switch {
		case strings.HasPrefix(text, "diff --git "):
			inHunk, colour = false, "\x1b[1m"
		case strings.HasPrefix(text, "@@"):
			inHunk, colour = true, "\x1b[36m"
		case !inHunk:
			colour = "\x1b[1m"
		case strings.HasPrefix(text, "+"):
			colour = "\x1b[32m"
		case strings.HasPrefix(text, "-"):
			colour = "\x1b[31m"
		}
		if colour != "" {
			text = colour + text + "\x1b[m"
		}
		painted.WriteString(text)
		if end {
			painted.WriteByte('\n')
		}
	}
	return painted.String()
}
