package menu

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"agency"
	"agency/internal/cli/term"
)

// errLeft means that the user leaves.
var errLeft = errors.New("the user leaves")

// newsEvery is the least time between two questions for what changed.
const newsEvery = time.Second

// console prints rows for the user, and reads what the user types.
type console struct {
	out      io.Writer
	want     chan<- struct{} // asks for a line
	lines    <-chan string
	changes  <-chan struct{}                    // something changed at the daemon
	news     func(ctx context.Context) []string // the rows about what has begun to need the user
	toldNews time.Time                          // when news was last called
}

// read sends the lines that the user types, each only when it is wanted: attach gives the terminal to
// another program meanwhile. The end of the input is the end of lines.
func read(ctx context.Context, in io.Reader, want <-chan struct{}, lines chan<- string) {
	defer close(lines)
	for r := bufio.NewReader(in); ; {
		select {
		case <-want:
		case <-ctx.Done():
			return
		}
		line, err := r.ReadString('\n')
		if err != nil {
			return // what is not a whole line may be the beginning of another one
		}
		select {
		case lines <- strings.TrimRight(line, "\r\n"):
		case <-ctx.Done():
			return
		}
	}
}

// say prints a row. Whatever is in it, it is one row.
func (con *console) say(format string, args ...any) {
	_, _ = fmt.Fprintln(con.out, term.SafeLine(fmt.Sprintf(format, args...)))
}

// sayCode prints a row of a program or a file with its spaces.
func (con *console) sayCode(text string) {
	text = strings.NewReplacer("\t", "    ", "\n", " ").Replace(term.SafeText(text))
	_, _ = fmt.Fprintln(con.out, strings.TrimRight(text, " "))
}

// line returns the next line that the user types. What begins to need the user meanwhile is told.
func (con *console) line(ctx context.Context, what string) (string, error) {
	con.say("%s", what)
	con.want <- struct{}{}
	var due <-chan time.Time
	for {
		select {
		case line, ok := <-con.lines:
			switch {
			case ctx.Err() != nil: // which ends the input too
				return "", ctx.Err()
			case !ok:
				return "", errLeft
			}
			return line, nil
		case <-con.changes:
			if due == nil {
				due = time.After(newsEvery - time.Since(con.toldNews))
			}
		case <-due:
			due, con.toldNews = nil, time.Now()
			for _, row := range con.news(ctx) {
				con.say("%s", row)
			}
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// command returns the letter, number or word that the user types. q leaves.
func (con *console) command(ctx context.Context, what string) (string, error) {
	line, err := con.line(ctx, what)
	if line = strings.TrimSpace(line); err == nil && line == leave {
		err = errLeft
	}
	return line, err
}

// text returns one line in the words of the user: no letter does anything. It is empty for none.
func (con *console) text(ctx context.Context, what string) (string, error) {
	line, err := con.line(ctx, what+", an empty line for none")
	return strings.TrimSpace(line), err
}

// lots returns lines in the words of the user, until an empty one.
func (con *console) lots(ctx context.Context, what string) (string, error) {
	lines := []string{}
	for {
		line, err := con.line(ctx, what)
		if err != nil || strings.TrimSpace(line) == "" {
			return strings.TrimSpace(strings.Join(lines, "\n")), err
		}
		lines, what = append(lines, line), "the next line, or an empty one"
	}
}

// sure asks whether something is to be done.
func (con *console) sure(ctx context.Context, what string) (bool, error) {
	line, err := con.command(ctx, what+" y/n")
	if yes, _ := term.YesOrNo(line); err != nil || yes {
		return yes, err
	}
	con.say("nothing was done")
	return false, nil
}

// inform prints an error and its way out.
func (con *console) inform(err error) {
	e := agency.AsError(err)
	con.say("error: %s", e.Message)
	if e.Hint != "" {
		con.say("%s", e.Hint)
	}
}

// fail prints an error and its way out. Only the end of the dialog ends the menu.
func (con *console) fail(err error) error {
	if err == nil || errors.Is(err, errLeft) || errors.Is(err, context.Canceled) {
		return err
	}
	con.inform(err)
	return nil
}

// warn prints warnings.
func (con *console) warn(warnings []string) {
	for _, warning := range warnings {
		con.say("warning: %s", warning)
	}
}
