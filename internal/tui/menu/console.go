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

// newsEvery is the shortest time between two readings of the news.
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

// read sends the lines that the user types, and closes lines at the end of the input. It reads a line
// only when want asks for one: meanwhile, attach may give the terminal to another program.
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
			return // a line without its end may be the beginning of another one
		}
		select {
		case lines <- strings.TrimRight(line, "\r\n"):
		case <-ctx.Done():
			return
		}
	}
}

// say prints a text as one row, whatever characters it has.
func (con *console) say(format string, args ...any) {
	_, _ = fmt.Fprintln(con.out, term.SafeLine(fmt.Sprintf(format, args...)))
}

// sayCode prints a line of a file or of a screen as one row, with its spaces.
func (con *console) sayCode(text string) {
	text = strings.NewReplacer("\t", "    ", "\n", " ").Replace(term.SafeText(text))
	_, _ = fmt.Fprintln(con.out, strings.TrimRight(text, " "))
}

// line asks for a line, and returns the next one that the user types. Until it comes, line prints news.
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

// text asks for a line in the words of the user, in which no letter has a meaning. It is empty for none.
func (con *console) text(ctx context.Context, what string) (string, error) {
	line, err := con.line(ctx, what+", an empty line for none")
	return strings.TrimSpace(line), err
}

// longText asks for lines in the words of the user, until an empty one.
func (con *console) longText(ctx context.Context, what string) (string, error) {
	lines := []string{}
	for {
		line, err := con.line(ctx, what)
		if err != nil || strings.TrimSpace(line) == "" {
			return strings.TrimSpace(strings.Join(lines, "\n")), err
		}
		lines, what = append(lines, line), "the next line, or an empty one"
	}
}

// sure asks a question, and reports whether the user answers yes.
func (con *console) sure(ctx context.Context, what string) (bool, error) {
	line, err := con.command(ctx, what+" y/n")
	if yes, _ := term.YesOrNo(line); err != nil || yes {
		return yes, err
	}
	con.say("nothing was done")
	return false, nil
}

// inform prints an error and its hint.
func (con *console) inform(err error) {
	e := agency.AsError(err)
	con.say("error: %s", e.Message)
	if e.Hint != "" {
		con.say("%s", e.Hint)
	}
}

// fail prints an error and its hint. It returns only an error that ends the menu.
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
