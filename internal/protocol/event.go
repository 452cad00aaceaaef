// Package protocol holds what agency and an agent say to each other in the agent's own protocol. A
// Dialect is one agent's protocol: it reads the lines of the agent as events, and makes the frames for
// what agency says. A Talk is the conversation of one attempt: it turns events into evidence and readable
// text, and knows which requests are open and what the agent has taken. After a crash the journal makes
// the same Talk again. The package is pure: bytes come in, and bytes, evidence and text go out.
package protocol

import (
	"encoding/json"

	"agency"
)

// Kind is the kind of an event.
type Kind int

// The kinds of events.
const (
	Unknown   Kind = iota // Name is all that is known
	Session               // Conversation or one of Settings became known or changed
	Working               // the agent is at work
	Resting               // the agent has finished all that it was told, subagents included
	Part                  // Text is a part of what the agent says: more may follow
	Message               // the agent, or a subagent, says Text
	Tool                  // the agent calls the tool ID: Tool, Text
	ToolEnded             // the tool call ID has ended: Text is its result, Failed
	Asked                 // the agent waits for the answer to Request
	Answered              // the agent took the answer to the request ID
	Foreign               // the agent waits for the reply to its request ID, which agency does not know
	Withdrawn             // the agent no longer waits for the request ID
	Taken                 // the agent took the message ID, to begin with it later
	Begun                 // the agent begins with the message ID
	Done                  // the agent is done with the message ID
	Dropped               // the agent will not begin with the message ID
	Replied               // the program replies to the request ID of agency: Queued; Failed with Text
	Used                  // the model was used: Usage
	Retrying              // a call of the model failed and is tried again: Class, Text
	Planned               // the agent changed the list of its work: Todos, the whole list when Whole is set
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
	Thread       string          // the conversation of the event, where a program has several; empty for that of the attempt
	Turn         string          // the turn of the event, where the protocol names turns
	Settings     agency.Settings // of Session, and of the reply to a change; what is empty stays as it was
	Request      *Request
	Queued       []string // messages that the agent still begins with after an interruption
	Class        agency.ErrorClass
	Failed       bool
	Interrupted  bool
	Usage        *agency.Usage
	Todos        []Todo
	Greeting     json.RawMessage `json:",omitempty"` // of Session: what the program says about itself, for guests
	Whole        bool            // Usage covers the conversation; Todos is the whole list
	Add          bool            // Usage covers only the step ID
}

// Todo is a step in an agent's list of its work, or a change of a step: what is empty stays as it was.
type Todo struct {
	ID      string // the id that the program gave it; empty where a list always comes whole
	Call    string // the tool call that added it, as long as ID is not known
	Text    string
	State   agency.TodoState
	Deleted bool
}

// Request is a permission or a question for which an agent waits.
type Request struct {
	ID       string
	Kind     agency.RequestKind
	Tool     string
	Text     string
	Options  []string // the answers that the agent names
	Subagent string
	// Number is the name by which the program ends the request, where that is not ID. Each process of the
	// program counts from the beginning.
	Number string
	Call   string          // the tool call for which the agent asks; its Tool and Text are used where these are empty
	Input  json.RawMessage `json:",omitempty"` // what an answer has to repeat, in the form of the protocol
}

// Place is the place in a conversation at which agency says something.
type Place struct {
	Conversation string     // that of the attempt, or the one that the attempt resumes; empty before it begins
	Turn         string     // the current or last turn
	Dir          string     // the working directory
	Open         []*Request // the open requests without an answer
}

// Dialect is one agent's protocol. Its functions are pure, and accept what they do not know.
type Dialect struct {
	// Name is the name of the protocol, for people.
	Name string
	// Hello returns the frame that begins or resumes a conversation; the reply has this id.
	Hello func(at Place, id string) []byte
	// Read reads one line of the agent. A line that it does not understand is an event of the kind
	// Unknown.
	Read func(line []byte) []Event
	// Message returns the frame of a message, and Interrupt the one that interrupts the turn. The text of
	// a message names the attached files; files are their absolute paths, for a protocol that can pass
	// files on.
	Message   func(at Place, id, text string, files []string) []byte
	Interrupt func(at Place, id string) []byte
	// Set returns a frame that changes a setting, and TakeBack one that takes back a message that the
	// agent has not begun with; nil where the protocol has no such frame.
	Set      func(at Place, id string, setting agency.Setting, value string) ([]byte, error)
	TakeBack func(id, message string) []byte
	// Look returns a frame that asks for something harmless. The reply shows that the program has read all
	// that was written before. Look is nil where an agent ignores a message whose id it has had before.
	Look func(at Place, id string) []byte
	// OneAtATime is set where a message in a turn ends that turn: agency sends none during a turn.
	OneAtATime bool
	// Replays is set where the program repeats an old conversation before it replies to Hello.
	Replays bool
	// Reasons is set where an answer can tell the agent why the user denied its request.
	Reasons bool
	// Refuse returns the frame that tells the agent that agency does not know its request, by its id
	// and the name of its frame.
	Refuse func(id, name string) []byte
	// Answer returns the frame of a reply; the error is E_USAGE for a reply that does not fit.
	Answer func(r *Request, reply agency.Reply) ([]byte, error)
	// Guests is how the agent's own terminal joins the conversation; nil where none can.
	Guests *Guests
}
