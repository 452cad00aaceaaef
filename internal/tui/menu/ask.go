package menu

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"agency/internal/cli/term"
)

// errLeft means that the user leaves.
var errLeft = errors.New("the user leaves")

// newsEvery is the least time between two questions for what changed.
const newsEvery = time.Second

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
func (m *Menu) say(format string, args ...any) {
	_, _ = fmt.Fprintln(m.o.Out, term.SafeLine(fmt.Sprintf(format, args...)))
}

// sayCode prints a row of a program or a file with its spaces.
func (m *Menu) sayCode(text string) {
	text = strings.NewReplacer("\t", "    ", "\n", " ").Replace(term.SafeText(text))
	_, _ = fmt.Fprintln(m.o.Out, strings.TrimRight(text, " "))
}

// line returns the next line that the user types. What begins to need the user meanwhile is told.
func (m *Menu) line(ctx context.Context, what string) (string, error) {
	m.say("%s", what)
	m.want <- struct{}{}
	var due <-chan time.Time
	for {
		select {
		case line, ok := <-m.lines:
			switch {
			case ctx.Err() != nil: // which ends the input too
				return "", ctx.Err()
			case !ok:
				return "", errLeft
			}
			return line, nil
		case <-m.seen:
			if due == nil {
				due = time.After(newsEvery - time.Since(m.listed))
			}
		case <-due:
			due = nil
			m.news(ctx)
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// command returns the letter, number or word that the user types. q leaves.
func (m *Menu) command(ctx context.Context, what string) (string, error) {
	line, err := m.line(ctx, what)
	if line = strings.TrimSpace(line); err == nil && line == leave {
		err = errLeft
	}
	return line, err
}

// text returns one line in the words of the user: no letter does anything. It is empty for none.
func (m *Menu) text(ctx context.Context, what string) (string, error) {
	line, err := m.line(ctx, what+", an empty line for none")
	return strings.TrimSpace(line), err
}

// lots returns lines in the words of the user, until an empty one.
func (m *Menu) lots(ctx context.Context, what string) (string, error) {
	lines := []string{}
	for {
		line, err := m.line(ctx, what)
		if err != nil || strings.TrimSpace(line) == "" {
			return strings.TrimSpace(strings.Join(lines, "\n")), err
		}
		lines, what = append(lines, line), "the next line, or an empty one"
	}
}

// sure asks whether something is to be done.
func (m *Menu) sure(ctx context.Context, what string) (bool, error) {
	line, err := m.command(ctx, what+" y/n")
	if yes, _ := term.YesOrNo(line); err != nil || yes {
		return yes, err
	}
	m.say("nothing was done")
	return false, nil
}
