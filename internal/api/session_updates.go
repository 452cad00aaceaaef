package api

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"agency"
)

// UpdateStream is a lasting connection for reports on one session. One goroutine may send while
// another one receives.
type UpdateStream struct {
	body io.ReadWriteCloser
	in   *bufio.Reader
	out  *bufio.Writer
	stop context.CancelFunc
	lost func(error) error // returns why there is no answer
}

// Updates opens a connection for reports on a session, until the caller closes it or ctx ends.
func (c *Client) Updates(ctx context.Context, req SessionRequest) (*UpdateStream, error) {
	query := encodeQuery(req)
	var stream *UpdateStream
	err := c.withDaemon(ctx, true, Reads.timeout(nil), func() error {
		live, cancel := c.whileAlive(ctx)
		r, err := http.NewRequestWithContext(live, http.MethodGet, "http://agency"+SessionUpdatesPath+"?"+query.Encode(), nil)
		if err != nil {
			cancel()
			return fmt.Errorf("make request of %s: %w", SessionUpdatesPath, err)
		}
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", UpdatesProtocol)
		answer, err := c.do(r)
		if err != nil {
			cancel()
			return err
		}
		body, ok := answer.Body.(io.ReadWriteCloser)
		if answer.StatusCode != http.StatusSwitchingProtocols || !ok {
			defer cancel()
			defer func() { _ = answer.Body.Close() }()
			if err := c.readEnvelope(answer, nil); err != nil {
				return err
			}
			return unreadable(fmt.Errorf("status %d", answer.StatusCode))
		}
		context.AfterFunc(live, func() { _ = body.Close() })
		stream = &UpdateStream{
			body: body, in: bufio.NewReaderSize(body, UpdateLimit), out: bufio.NewWriterSize(body, UpdateLimit), stop: cancel,
			lost: func(err error) error { return lostUpdate(c.orSilent(live, err)) },
		}
		return nil
	})
	return stream, err
}

// Send takes one line, an update as JSON without a newline in it. The line is sent by Flush, or
// earlier when there are many.
func (s *UpdateStream) Send(line []byte) error {
	if _, err := s.out.Write(line); err != nil {
		return s.lost(err)
	}
	if err := s.out.WriteByte('\n'); err != nil {
		return s.lost(err)
	}
	return nil
}

// Flush sends the lines that Send took.
func (s *UpdateStream) Flush() error {
	if err := s.out.Flush(); err != nil {
		return s.lost(err)
	}
	return nil
}

// Receive waits for the answer to the oldest line without one. refusal is the daemon's error. err
// means that there is no answer, and the line may have been applied or not.
func (s *UpdateStream) Receive() (refusal, err error) {
	line, err := s.in.ReadSlice('\n')
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, s.lost(err)
	}
	if string(line) == "{\"ok\":true}\n" {
		return nil, nil // the usual case
	}
	var reply UpdateReply
	if err := Decode(bytes.TrimSuffix(line, []byte("\n")), &reply); err != nil {
		return nil, unreadable(err)
	}
	e := Envelope{OK: reply.OK, Error: reply.Error}
	return e.Err(), nil
}

// Answered reports whether the next answer has arrived already.
func (s *UpdateStream) Answered() bool {
	waiting, _ := s.in.Peek(s.in.Buffered())
	return bytes.IndexByte(waiting, '\n') >= 0
}

// Close ends the connection.
func (s *UpdateStream) Close() error {
	s.stop()
	return s.body.Close()
}

// lostUpdate returns the error for lines that were sent and not answered.
func lostUpdate(err error) error {
	if errors.Is(err, ErrSilent) {
		return unanswered(err)
	}
	return agency.AsError(lost(err)).WithHint("see what was recorded: agency session show")
}
