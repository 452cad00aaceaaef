package protocol

import (
	"encoding/json"
	"fmt"
	"slices"

	"agency"
)

// memory is all that a talk remembers, apart from the parts of an unfinished message. It is kept as JSON,
// so that the next wrapper need not read the journal from its beginning. That may be a wrapper of a newer
// agency: names of fields, and of those of embedded structs, do not change.
type memory struct {
	requests
	deliveries

	Tools    map[string]tool // open tool calls
	Todos    []Todo
	Place    Place
	Settings agency.Settings // as the agent reports them
	Queued   string          // the messages with which the agent has not begun, as evidence
	PartOf   string          // the subagent that says the unfinished message; empty for the agent itself
	Last     string          // what the agent last said in this turn
	Failed   string          // why the program did not begin the conversation
	Hello    bool            // the program answered Hello
	Silent   bool            // after Hello the agent waits for a message
	Turn     bool            // the agent is in a turn
	Resting  bool            // the agent reported rest while requests were open: it rests when they are over
	Ended    *Event          // how the turn ended, as far as it is known
	Resumed  bool            // the conversation is older than the attempt
	Greeting json.RawMessage `json:",omitempty"` // what the program says about itself, for guests
	Beside   []string        `json:",omitempty"` // conversations that guests began
}

// tool is an open tool call.
type tool struct{ Name, Text string }

// withoutText returns what is remembered of something that is never written again: the agent has begun
// with it or dropped it.
func (i *Intent) withoutText() *Intent {
	if i == nil {
		return nil
	}
	return &Intent{At: i.At, Wire: i.Wire, Saying: agency.Saying{Kind: i.Kind, ID: i.ID, Decision: i.Decision, Answer: i.Answer, By: i.By}}
}

// checkpoint is a talk in a file.
type checkpoint struct {
	memory

	Part string // the parts of an unfinished message
}

// Memory returns what a talk remembers.
func (t *Talk) Memory() ([]byte, error) {
	data, err := json.Marshal(checkpoint{memory: t.memory, Part: t.part.String()})
	if err != nil {
		return nil, fmt.Errorf("keep what was said: %w", err)
	}
	return data, nil
}

// Remember makes a talk continue from where Memory was called on another one.
func (t *Talk) Remember(data []byte) error {
	var c checkpoint
	if err := json.Unmarshal(data, &c); err != nil {
		return fmt.Errorf("read what was said: %w", err)
	}
	if c.Tools == nil {
		c.Tools = map[string]tool{}
	}
	t.memory = c.memory
	t.part.Reset()
	t.part.WriteString(c.Part)
	return nil
}

// addNewest adds an element to a list that has at most so many. The oldest makes room for it.
func addNewest[T any](list []T, newest T, most int) []T {
	if len(list) == most {
		list = slices.Delete(list, 0, 1)
	}
	return append(list, newest)
}
