// Package protocol holds what agency and an agent say to each other in the agent's own protocol: the
// events that all protocols have, and the journal of one attempt, from which everything else is made
// again after a crash: what is open, what was said and taken, the evidence, and the readable text.
// It is pure: bytes come in, and bytes, evidence and text go out.
package protocol

import (
	"encoding/json"

	"agency"
)

// Kind is what an event is about.
type Kind int

// The kinds of events.
const (
	Unknown   Kind = iota // Text is its name in the protocol
	Session               // Conversation or one of Settings became known, or is another one now
	Working               // the agent is at work
	Resting               // the agent has finished all that it was told, subagents included
	Part                  // Text is a part of what the agent says: more may follow
	Message               // Text was said by the agent, or a subagent
	Tool                  // the agent calls the tool ID: Tool, Text
	ToolEnded             // the tool call ID has ended: Text is its result, Failed
	Asked                 // the agent waits for the answer to Request
	Answered              // the agent took our answer to the request ID
	Foreign               // the agent waits for the reply to its request ID, which agency does not know
	Withdrawn             // the agent no longer waits for the request ID
	Taken                 // the agent took our message ID, to begin with it later
	Begun                 // the agent begins with our message ID
	Done                  // the agent is done with our message ID
	Dropped               // the agent will not begin with our message ID
	Replied               // the reply to what we asked of the program: ID, Queued, Failed with Text
	Used                  // the model was used: Usage
	Retrying              // a call of the model failed and is tried again: Class, Text
	Planned               // the agent changed the list of its work: Todos, all of it when Whole is set
	Beside                // a guest began the conversation Thread beside this one
	Ended                 // the agent's turn ended: Text, Usage; Failed with Class, Interrupted
)

// Event is one thing that an agent said in its protocol. Its texts are the agent's, so they are
// untrusted.
type Event struct {
	Kind         Kind
	Name         string // of the frame, in the protocol
	ID           string
	Text         string
	Tool         string
	Subagent     string
	Conversation string
	Thread       string          // the conversation that it is about, where a program has several; empty for the attempt's own
	Turn         string          // the turn that it is about, where the protocol names turns
	Settings     agency.Settings // of Session, and of the reply to a change of one; empty is as before
	Request      *Request
	Queued       []string // messages that the agent still begins with after an interruption
	Class        agency.ErrorClass
	Failed       bool
	Interrupted  bool
	Usage        *agency.Usage
	Todos        []Todo
	Greeting     json.RawMessage `json:",omitempty"` // of Session: what the program says of itself, for guests
	Whole        bool            // Usage covers the conversation; Todos is the whole list
	Add          bool            // Usage covers one step, ID
}

// Todo is a step of an agent's list of its work, or a change of one: what is empty stays as it was.
type Todo struct {
	ID      string // the program's own; empty where a list always comes whole
	Call    string // the tool call that made it, as long as ID is not known
	Text    string
	State   agency.TodoState
	Deleted bool
}

// Request is what an agent waits for.
type Request struct {
	ID       string
	Kind     agency.RequestKind
	Tool     string
	Text     string
	Options  []string // the answers that it names
	Subagent string
	// Number is the name by which the program calls it off, where that is not ID: it counts anew in
	// each process.
	Number string
	Call   string          // the tool call that it is about; it says what Text does not
	Input  json.RawMessage `json:",omitempty"` // what an answer has to give back, in the form of the protocol
}

// Place is where something is said.
type Place struct {
	Conversation string     // that of the attempt, or the one that it resumes; empty before it begins
	Turn         string     // the present or last turn
	Dir          string     // the working directory
	Open         []*Request // without an answer
}

// Dialect is one agent's protocol. Its functions are pure, and never fail for what they do not know.
type Dialect struct {
	// Name is that of the protocol, for people.
	Name string
	// Hello begins or resumes a conversation; its reply has this id.
	Hello func(at Place, id string) []byte
	// Read reads one line of the agent. A line that it does not understand is an event of the kind
	// Unknown.
	Read func(line []byte) []Event
	// Message and Interrupt return the frames that say so. The text of a message names the files that
	// are attached to it; files are their absolute paths, for a protocol that can hand them over.
	Message   func(at Place, id, text string, files []string) []byte
	Interrupt func(at Place, id string) []byte
	// Set returns a frame that changes a setting, and TakeBack one that takes back a message that the
	// agent has not begun with; nil where the protocol cannot.
	Set      func(at Place, id string, setting agency.Setting, value string) ([]byte, error)
	TakeBack func(id, message string) []byte
	// Look returns a frame that asks for something harmless. Its reply comes after those to all that
	// was written before. It is nil where a message that is said again with the same id does not make
	// the agent begin with it again.
	Look func(at Place, id string) []byte
	// OneAtATime is set where a message in a turn ends that turn: agency says none then.
	OneAtATime bool
	// Replays is set where the program tells an old conversation again before it replies to Hello.
	Replays bool
	// Reasons is set where the agent is told why the user denied what it asks.
	Reasons bool
	// Refuse returns the frame that tells the agent that agency does not know its request, by its id
	// and the name of its frame.
	Refuse func(id, name string) []byte
	// Answer returns the frame of a reply; the error is E_USAGE for a reply that does not fit.
	Answer func(r *Request, reply agency.Reply) ([]byte, error)
	// Guests is how the agent's own terminal joins the conversation; nil where it cannot.
	Guests *Guests
}
