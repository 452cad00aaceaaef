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
)

// Stdio returns the transport of a client that writes one message per line. It answers an invalid
// line with a protocol error and continues, where the library's own reader would end the server.
// Closing the transport closes r, which the caller has opened.
func Stdio(r io.ReadCloser, w io.Writer) *sdk.IOTransport {
	out := &answers{w: w}
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
			return 0, err
		}
		if code, text := refuse(line); code != 0 {
			if err := m.out.refuse(code, text); err != nil {
				return 0, err
			}
			continue
		}
		m.rest = line
	}
	n := copy(p, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}

func (m *messages) Close() error { return m.from.Close() }

// line returns the next line that is not empty, with its end. Of a line that is too long it returns
// the beginning.
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

// answers writes whole messages, the library's and its own.
type answers struct {
	mu sync.Mutex
	w  io.Writer
}

func (a *answers) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.w.Write(p)
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
