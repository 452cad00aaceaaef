package term

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"agency"
)

// YesOrNo parses yes or no as users type it.
func YesOrNo(text string) (yes, ok bool) {
	switch strings.ToLower(text) {
	case "y", "yes", "true":
		return true, true
	case "n", "no", "false":
		return false, true
	default:
		return false, false
	}
}

// Lines reads what a user types, line by line.
type Lines struct{ lines chan typed }

type typed struct {
	text string
	err  error
}

// ReadLines reads in line by line, in the background, because a read of a terminal cannot be
// cancelled. It ends with the process.
func ReadLines(in io.Reader) *Lines {
	r := &Lines{lines: make(chan typed)}
	go func() {
		buffered := bufio.NewReaderSize(in, 4096)
		for {
			text, err := buffered.ReadString('\n')
			r.lines <- typed{strings.TrimSpace(text), err}
			if err != nil {
				return
			}
		}
	}()
	return r
}

// Next returns the next line, or the error of a context or an input that has ended.
func (r *Lines) Next(ctx context.Context) (string, error) {
	select {
	case line := <-r.lines:
		if line.err != nil {
			return "", agency.Errorf(agency.CodeUsage, "the input ended before the last answer, so nothing was written").
				WithHint("give the answers as flags: agency init --help")
		}
		return line.text, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// Confirm asks a question on w that is answered with yes or no. An empty line means usual.
func (r *Lines) Confirm(ctx context.Context, w io.Writer, text string, usual bool) (bool, error) {
	for {
		_, _ = fmt.Fprintf(w, "%s [%s]: ", text, YesNoWord(usual))
		line, err := r.Next(ctx)
		if err != nil || line == "" {
			return usual, err
		}
		if yes, ok := YesOrNo(line); ok {
			return yes, nil
		}
	}
}

// YesNoWord returns the word for an answer.
func YesNoWord(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}
