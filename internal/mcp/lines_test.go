package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

const (
	ping       = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	parseError = `{"error":{"code":-32700,"message":"Parse error"},"id":null,"jsonrpc":"2.0"}`
	noRequest  = `{"error":{"code":-32600,"message":"Invalid Request"},"id":null,"jsonrpc":"2.0"}`
	noBatch    = `{"error":{"code":-32600,"message":"Invalid Request: batches are not supported"},"id":null,"jsonrpc":"2.0"}`
	tooLong    = `{"error":{"code":-32700,"message":"Parse error: the message is too long"},"id":null,"jsonrpc":"2.0"}`
)

// talk reads all messages as the library does, and answers the requests among them. refusals are
// the answers that the library does not see.
func talk(r io.Reader) (got, refusals string, err error) {
	var out bytes.Buffer
	m := Stdio(io.NopCloser(r), &out)
	for in := bufio.NewReader(m.Reader); ; {
		line, err := in.ReadString('\n')
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return got + line, out.String(), err
		}
		got += line
		said := out.String()
		var message struct{ ID json.RawMessage }
		if json.Unmarshal([]byte(line), &message) == nil && message.ID != nil {
			if _, err := fmt.Fprintf(m.Writer, `{"jsonrpc":"2.0","id":%s,"result":{}}`, message.ID); err != nil {
				return got, said, err
			}
		}
		out.Reset()
		out.WriteString(said)
	}
}

// The end of the input waits for the answers to what was read, and a cancelled request needs none.
func TestEndWaitsForAnswers(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	second := strings.ReplaceAll(ping, `"id":1`, `"id":"b"`)
	cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"b"}}`
	m := Stdio(io.NopCloser(strings.NewReader(ping+"\n"+second+"\n"+cancel+"\n")), &out)
	in, ended := bufio.NewReader(m.Reader), make(chan error)
	for range 3 {
		if _, err := in.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	go func() { _, err := in.ReadString('\n'); ended <- err }()
	select {
	case err := <-ended:
		t.Fatalf("ended with %v before the answer", err)
	default:
	}
	if _, err := io.WriteString(m.Writer, `{"jsonrpc":"2.0","id":1,"result":{}}`); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, io.EOF) {
		t.Errorf("ended with %v", err)
	}
}

// An invalid line is answered, and the lines around it are read.
func TestMessages(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"garbage": parseError, `{"a":`: parseError, ping + " x": parseError, "\x00": parseError, "\xff": parseError,
		"3": noRequest, "null": noRequest, "{}": noRequest, `{"jsonrpc":"1.0","id":1,"method":"ping"}`: noRequest, `{"jsonrpc":"2.0","id":{},"method":"ping"}`: noRequest,
		"[]": noBatch, "[" + ping + "]": noBatch, `"` + strings.Repeat("x", mostMessage) + `"`: tooLong,
		"": "", " \t\r": "", ping: "",
	} {
		for _, text := range []string{ping + "\n" + line + "\n" + ping + "\n", ping + "\r\n" + line + "\r\n" + ping} {
			got, refusals, err := talk(iotest.OneByteReader(strings.NewReader(text)))
			wanted := strings.Repeat(ping+"\n", 2)
			if line == ping {
				wanted += ping + "\n"
			}
			if err != nil || got != wanted {
				t.Errorf("%.40q: read %.200q, %v", line, got, err)
			}
			if answer := strings.TrimSuffix(refusals, "\n"); answer != want {
				t.Errorf("%.40q: answered %s, want %s", line, answer, want)
			}
		}
	}
}

// For any input, the library gets one message per line, and every answer is JSON.
func FuzzMessages(f *testing.F) {
	f.Add([]byte(ping + "\ngarbage\n\n[" + ping + "]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, refusals, err := talk(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(got) {
			if code, _ := refuse([]byte(strings.TrimSpace(line))); code != 0 {
				t.Errorf("%q went on", line)
			}
		}
		for line := range strings.Lines(refusals) {
			if !json.Valid([]byte(line)) {
				t.Errorf("answered %q", line)
			}
		}
	})
}
