package protocol

import (
	"encoding/json"
	"fmt"

	"agency"
)

// memory is all that a talk remembers, but for what is in the journal after it. It is kept as JSON, so
// that the next wrapper need not read the journal from its beginning.
type memory struct {
	Open      []asked
	Foreign   []foreign // requests that agency does not know, without a reply
	Unknown   int       // requests that agency did not know, so far
	Closed    []closed
	Said      []said
	Forgotten bool            // of Said, the oldest is left out
	Tools     map[string]tool // open tool calls
	Todos     []Todo
	Place     Place
	Settings  agency.Settings // as the agent tells them
	Queued    string          // the messages that it has not begun with, as evidence
	PartOf    string          // the subagent that says the message of which more may come
	Last      string          // what the agent last said in this turn
	Failed    string          // why the program did not begin the conversation
	Asked     int             // requests so far
	Hello     bool            // the program answered our Hello
	Silent    bool            // after Hello it waits for a message
	Turn      bool            // the agent is in a turn
	Resting   bool            // the agent said that it rests, with requests open: it does when they are over
	Ended     *Event          // how the turn ended, as far as it is known
	Resumed   bool            // the conversation is older than the attempt
	Greeting  json.RawMessage `json:",omitempty"` // what the program said of itself, for guests
	Beside    []string        `json:",omitempty"` // conversations that guests began
}

// tool is an open tool call.
type tool struct{ Name, Text string }

// asked is an open request.
type asked struct {
	Request

	Nth int
	By  *Intent // the answer that was written and is not taken yet
}

// foreign is a request that agency does not know.
type foreign struct {
	ID, Name string
	Refusal  string // the id of what agency says to it
}

// closed is a request that is over.
type closed struct {
	ID string
	By *Intent // nil when the agent withdrew it
}

// stage is how far something that agency said got.
type stage int

const (
	written stage = iota
	taken
	begun
	over
	dropped
)

// said is a message, an interruption, or Hello.
type said struct {
	Intent Intent
	Stage  stage
	Queued []string // of an interruption
	Failed string   // why the program refused it
}

// read returns what is remembered of something that the agent has begun with or dropped, and that is
// never written again.
func (i *Intent) read() *Intent {
	if i == nil {
		return nil
	}
	return &Intent{At: i.At, Wire: i.Wire, Saying: agency.Saying{Kind: i.Kind, ID: i.ID, Decision: i.Decision, Answer: i.Answer, By: i.By}}
}

// kept is the form of a memory in a file.
type kept struct {
	memory

	Part string
}

// Memory returns what a talk remembers.
func (t *Talk) Memory() ([]byte, error) {
	data, err := json.Marshal(kept{memory: t.memory, Part: t.part.String()})
	if err != nil {
		return nil, fmt.Errorf("keep what was said: %w", err)
	}
	return data, nil
}

// Remember makes a talk go on from where Memory was called on another one.
func (t *Talk) Remember(data []byte) error {
	var k kept
	if err := json.Unmarshal(data, &k); err != nil {
		return fmt.Errorf("read what was said: %w", err)
	}
	if k.Tools == nil {
		k.Tools = map[string]tool{}
	}
	t.memory = k.memory
	t.part.Reset()
	t.part.WriteString(k.Part)
	return nil
}
