package mcp

import (
	"bytes"
	"encoding/json"
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
			var out bytes.Buffer
			m := Stdio(io.NopCloser(strings.NewReader(text)), &out)
			got, err := io.ReadAll(iotest.OneByteReader(m.Reader))
			wanted := strings.Repeat(ping+"\n", 2)
			if line == ping {
				wanted += ping + "\n"
			}
			if err != nil || string(got) != wanted {
				t.Errorf("%.40q: read %.200q, %v", line, got, err)
			}
			if answer := strings.TrimSuffix(out.String(), "\n"); answer != want {
				t.Errorf("%.40q: answered %s, want %s", line, answer, want)
			}
		}
	}
}

// For any input, the library gets one message per line, and every answer is JSON.
func FuzzMessages(f *testing.F) {
	f.Add([]byte(ping + "\ngarbage\n\n[" + ping + "]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var out bytes.Buffer
		got, err := io.ReadAll(Stdio(io.NopCloser(bytes.NewReader(text)), &out).Reader)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(got) {
			if code, _ := refuse(bytes.TrimSpace(line)); code != 0 {
				t.Errorf("%q went on", line)
			}
		}
		for line := range bytes.Lines(out.Bytes()) {
			if !json.Valid(line) {
				t.Errorf("answered %q", line)
			}
		}
	})
}
