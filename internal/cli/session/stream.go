package session

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/term"
)

// updateWindow is how many reports may be sent without an answer: enough to keep the daemon's disk
// busy, but so few that none waits long.
const updateWindow = 8

// streamUpdates sends the lines of standard input as reports on a session, and prints the answer to
// each. The exit status is that of the first refused report.
func (o *updateOptions) streamUpdates(ctx context.Context, session string) error {
	client, err := o.Client()
	if err != nil {
		return err
	}
	stream, err := client.Updates(ctx, api.SessionRequest{Session: session, Dir: o.Dir})
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	sent, ended := make(chan sentLine, updateWindow), make(chan error, 1)
	go func() {
		ended <- sendUpdates(ctx, bufio.NewReaderSize(term.Input(ctx, o.In), api.UpdateLimit), stream, sent)
		close(sent)
	}()
	out := bufio.NewWriter(o.Out)
	answer := updateAnswers{Deps: o.Deps, out: out}
	for line := range sent {
		refusal := line.refusal
		if refusal == nil {
			if refusal, err = stream.Receive(); err != nil {
				return errors.Join(ctx.Err(), agency.AsError(fmt.Errorf("line %d: %w", line.number, err)), out.Flush())
			}
		}
		if err := answer.take(line.number, refusal); err != nil {
			return err
		}
		if !stream.Answered() {
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
	if err := errors.Join(<-ended, out.Flush()); err != nil {
		return err
	}
	o.Chat("%s, %d refused", command.Count(answer.taken+answer.refused, "report"), answer.refused)
	return nil
}

// sentLine is a line whose answer has not arrived yet.
type sentLine struct {
	number  int
	refusal error // of a line that was not sent
}

// sendUpdates sends lines until there are no more. It skips empty ones.
func sendUpdates(ctx context.Context, in *bufio.Reader, stream *api.UpdateStream, sent chan<- sentLine) error {
	for number := 1; ; number++ {
		next := sentLine{number: number}
		line, err := in.ReadSlice('\n')
		for errors.Is(err, bufio.ErrBufferFull) {
			next.refusal = agency.Errorf(agency.CodeUsage, "the line has more than %d bytes", api.UpdateLimit).WithHint("one report is one line")
			line, err = in.ReadSlice('\n')
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return agency.Errorf(agency.CodeUsage, "read line %d of standard input: %w", number, err)
		}
		if line := bytes.TrimSpace(line); len(line) > 0 || next.refusal != nil {
			select {
			case sent <- next:
			default: // the window is full
				if err := stream.Flush(); err != nil {
					return err
				}
				select {
				case sent <- next:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			if next.refusal == nil {
				if err := stream.Send(line); err != nil {
					return err
				}
			}
		}
		if errors.Is(err, io.EOF) {
			return stream.Flush()
		}
		if waiting, _ := in.Peek(in.Buffered()); bytes.IndexByte(waiting, '\n') < 0 {
			if err := stream.Flush(); err != nil {
				return err
			}
		}
	}
}

// updateAnswers prints the answers to lines.
type updateAnswers struct {
	*command.Deps
	out            io.Writer
	taken, refused int
}

func (u *updateAnswers) take(line int, refusal error) error {
	if refusal == nil {
		u.taken++
		if !u.JSON {
			return nil
		}
		_, err := fmt.Fprintf(u.out, `{"ok":true,"schema_version":%d,"data":{"line":%d}}`+"\n", api.SchemaVersion, line)
		return err
	}
	e := agency.AsError(refusal).WithDetail("line", line)
	if u.refused++; u.refused == 1 {
		u.Status = e.Code.Exit()
	}
	if u.JSON {
		return api.EncodeLine(u.out, api.Failure(e))
	}
	_, err := fmt.Fprintf(u.Err, "agency: line %d: %s [%s]\n", line, term.SafeLine(e.Message), e.Code)
	return err
}
