// Package jsonrpc reads and writes JSON-RPC with one message a line, as agents do on their standard input
// and output.
package jsonrpc

import (
	"bytes"
	"cmp"
	"encoding/json"

	"agency/internal/harness/agent"
	"agency/internal/protocol"
)

// Message is one line of an agent: a notification, a request, or the reply to a request of agency. Its types
// are those that the agent's protocol has for parameters, results and errors.
type Message[P, R, E any] struct {
	Method string          `json:"method"`
	ID     json.RawMessage `json:"id"`
	Params P               `json:"params"`
	Result R               `json:"result"`
	Error  *E              `json:"error"`
}

// OurID returns the id of the request of agency to which a message replies: a text.
func (m *Message[P, R, E]) OurID() string {
	var id string
	_ = json.Unmarshal(m.ID, &id)
	return id
}

// Reader reads the three kinds of messages of an agent's protocol. Request returns nil for a request that
// it does not know, and Thread returns the conversation that a message is about.
type Reader[P, R, E any] struct {
	Reply, Request, Notification func(*Message[P, R, E]) []protocol.Event
	Thread                       func(*P) string
}

// Read reads one line of an agent.
func (r *Reader[P, R, E]) Read(line []byte) (events []protocol.Event) {
	var m Message[P, R, E]
	switch {
	case !agent.Lenient(line, &m) || m.Method == "" && m.ID == nil:
		return []protocol.Event{{Kind: protocol.Unknown, Name: "a line that is not a message"}}
	case m.Method == "":
		events = r.Reply(&m)
	case m.ID == nil:
		events = r.Notification(&m)
	default:
		if events = r.Request(&m); events == nil {
			events = []protocol.Event{{Kind: protocol.Foreign, ID: string(m.ID)}}
		}
	}
	for i := range events {
		events[i].Name, events[i].Thread = cmp.Or(m.Method, "reply"), cmp.Or(events[i].Thread, r.Thread(&m.Params))
	}
	return events
}

// methodNotFound is the code of the error for a request with an unknown method.
const methodNotFound = -32601

// NotFound returns the reply to a request that agency does not know, by its id and its method.
func NotFound(id, method string) map[string]any {
	return map[string]any{"id": json.RawMessage(id), "error": map[string]any{"code": methodNotFound, "message": "Method not found: " + method}}
}

// Encode returns messages, each of which is one line.
func Encode(messages ...map[string]any) []byte {
	var out bytes.Buffer
	for _, m := range messages {
		if err := json.NewEncoder(&out).Encode(m); err != nil {
			panic(err) // never: the messages have only texts and valid JSON
		}
	}
	return out.Bytes()
}
