package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sys/unix"
)

// Stdio returns the transport of a client that writes one message per line. It answers an invalid
// line with a protocol error and continues, where the library's own reader would end the server.
// Closing the transport closes r, which the caller has opened.
//
// At the end of its input it still waits for the answers to the requests that it has read, so that
// a pipe gets them, unless the client no longer reads.
func Stdio(r io.ReadCloser, w io.Writer) *sdk.IOTransport {
	out := &answers{w: w, open: map[jsonrpc.ID]bool{}, done: make(chan struct{})}
	return &sdk.IOTransport{Reader: &messages{from: r, in: bufio.NewReaderSize(r, 64<<10), out: out}, Writer: out}
}

// mostMessage is the longest line that is read, in bytes.
const mostMessage = 8 << 20

// messages returns the lines that are valid messages, and answers the others.
type messages struct {
	from io.Closer
	in   *bufio.Reader
	out  *answers
	rest []byte // of the message that is being read
}

func (m *messages) Read(p []byte) (int, error) {
	for len(m.rest) == 0 {
		line, err := m.line()
		if err != nil {
			m.out.finish()
			return 0, err
		}
		if code, text := refuse(line); code != 0 {
			if err := m.out.refuse(code, text); err != nil {
				return 0, err
			}
			continue
		}
		m.out.expect(line)
		m.rest = line
	}
	n := copy(p, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}

func (m *messages) Close() error { return m.from.Close() }

// line returns the next line that is not empty, with its end, or the beginning of a line that is
// too long.
func (m *messages) line() ([]byte, error) {
	for {
		var line []byte
		for {
			part, err := m.in.ReadSlice('\n')
			if len(line) <= mostMessage {
				line = append(line, part...)
			}
			if err == nil || errors.Is(err, io.EOF) && len(bytes.TrimSpace(line)) > 0 {
				break
			}
			if !errors.Is(err, bufio.ErrBufferFull) {
				return nil, err
			}
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return append(line, '\n'), nil
		}
	}
}

// refuse returns why a line is not a valid message; code is 0 for a valid one.
func refuse(line []byte) (code int64, text string) {
	switch {
	case len(line) > mostMessage:
		return jsonrpc.CodeParseError, "Parse error: the message is too long"
	case !json.Valid(line):
		return jsonrpc.CodeParseError, "Parse error"
	case line[0] == '[':
		return jsonrpc.CodeInvalidRequest, "Invalid Request: batches are not supported"
	}
	if _, err := jsonrpc.DecodeMessage(line); err != nil {
		return jsonrpc.CodeInvalidRequest, "Invalid Request"
	}
	return 0, ""
}

// answers writes whole messages, the library's and its own. It knows which requests have no answer
// yet.
type answers struct {
	w     io.Writer
	mu    sync.Mutex
	open  map[jsonrpc.ID]bool // requests without an answer
	ended bool                // there are no more requests
	done  chan struct{}       // closed when all requests are answered after the end
}

func (a *answers) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n, err := a.w.Write(p)
	if m, decodeErr := jsonrpc.DecodeMessage(p); decodeErr == nil {
		if answer, ok := m.(*jsonrpc.Response); ok {
			a.settle(answer.ID)
		}
	}
	if err != nil {
		clear(a.open) // the client no longer reads
		a.settle(jsonrpc.ID{})
	}
	return n, err
}

// expect records a request, which needs an answer unless the client cancels it.
func (a *answers) expect(line []byte) {
	m, err := jsonrpc.DecodeMessage(line)
	request, ok := m.(*jsonrpc.Request)
	if err != nil || !ok {
		return
	}
	var cancelled struct {
		ID any `json:"requestId"`
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case request.ID.IsValid():
		a.open[request.ID] = true
	case request.Method == "notifications/cancelled" && json.Unmarshal(request.Params, &cancelled) == nil:
		if id, err := jsonrpc.MakeID(cancelled.ID); err == nil {
			delete(a.open, id)
		}
	}
}

// settle records that a request has its answer. The caller holds the lock.
func (a *answers) settle(id jsonrpc.ID) {
	delete(a.open, id)
	if a.ended && len(a.open) == 0 {
		select {
		case <-a.done:
		default:
			close(a.done)
		}
	}
}

// finish waits until every request is answered, or until the client no longer reads.
func (a *answers) finish() {
	a.mu.Lock()
	a.ended = true
	a.settle(jsonrpc.ID{})
	a.mu.Unlock()
	select {
	case <-a.done:
	case <-gone(a.w):
	}
}

// gone returns a channel that is closed when the other end of a pipe or socket is closed.
func gone(w io.Writer) <-chan struct{} {
	ended := make(chan struct{})
	f, ok := w.(interface{ Fd() uintptr })
	if !ok {
		return ended
	}
	go func() { // ends with the process, if the client reads to the end
		for {
			fds := []unix.PollFd{{Fd: int32(f.Fd())}}
			n, err := unix.Poll(fds, -1)
			if n > 0 && fds[0].Revents != 0 {
				close(ended)
				return
			}
			if err != nil && !errors.Is(err, unix.EINTR) {
				return
			}
		}
	}()
	return ended
}

// Close leaves the output open, since the caller owns it.
func (a *answers) Close() error { return nil }

// refuse answers a line whose request id is unknown.
func (a *answers) refuse(code int64, text string) error {
	data, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": code, "message": text}})
	if err != nil {
		return err
	}
	_, err = a.Write(append(data, '\n'))
	return err
}
