package agency

import (
	"strings"
	"time"
)

// Source is where a piece of evidence about an agent comes from.
type Source string

// The sources of evidence. Beside them stand the contract, the record and the clock, which need no stream of their own.
const (
	FromHook       Source = "hook"       // the agent called agency's hook
	FromStream     Source = "stream"     // the structured output of an agent without a terminal
	FromSession    Source = "session"    // the file in which the agent keeps what it does at the moment
	FromTranscript Source = "transcript" // the file in which the agent keeps the conversation
	FromTitle      Source = "title"      // the title that the agent gave its terminal
	FromScreen     Source = "screen"     // what its terminal shows, the last resort
	FromOutput     Source = "output"     // lines that the user's patterns call errors
	FromReport     Source = "report"     // agency report
)

// Sources are all sources, the most trusted first.
func Sources() []Source {
	return []Source{FromHook, FromStream, FromSession, FromTranscript, FromReport, FromTitle, FromScreen, FromOutput}
}

// Signal is what a piece of evidence says about the agent.
type Signal string

// The signs. What each does to the situation is in status.Observe.
const (
	SignalSession     Signal = "session"      // a conversation began or is known: Conversation, Model, Transcript
	SignalPrompt      Signal = "prompt"       // a person or agency submitted a prompt: a turn begins
	SignalBusy        Signal = "busy"         // the agent is at work
	SignalToolStarted Signal = "tool_started" // ID, Tool, Text
	SignalToolEnded   Signal = "tool_ended"   // ID
	SignalAsked       Signal = "asked"        // Request: the agent waits for a person
	SignalShown       Signal = "shown"        // ID is the open request whose dialog the terminal shows
	SignalAnswered    Signal = "answered"     // the request ID is answered; without an ID the program waits for nothing
	SignalRetrying    Signal = "retrying"     // Class: a call of the model failed and is tried again
	SignalFailed      Signal = "failed"       // Class, Text: the turn ended with an error
	SignalTurnEnded   Signal = "turn_ended"   // Text is the last message; Background counts what still works
	SignalInterrupted Signal = "interrupted"  // a person ended the turn
	SignalResting     Signal = "resting"      // the agent shows no work: at its end, or waiting for an answer
	SignalUsage       Signal = "usage"        // Usage
	SignalEnded       Signal = "ended"        // the conversation ended, the program is about to
	SignalReport      Signal = "report"       // Report, Text, and Quiet
	SignalPrinted     Signal = "printed"      // Text is a line of output that one of the user's patterns matches; Event is Again when the one before still stands
	SignalUnknown     Signal = "unknown"      // something that this version does not know; Event names it
)

// EventContinued is the Event of a line of output that goes on with what was printed before it.
const EventContinued = "again"

// EventComplete is the Event of a screen's evidence that says all that a dialog asks.
const EventComplete = "in full"

// RequestKind is what an agent waits for.
type RequestKind string

// The kinds of requests.
const (
	AsksPermission RequestKind = "permission" // leave to use a tool
	AsksQuestion   RequestKind = "question"
	AsksDialog     RequestKind = "dialog" // its program wants something before it works at all: trust, a login, a setting
)

// ErrorClass sorts what goes wrong between an agent and its model.
type ErrorClass string

// The classes of errors.
const (
	ErrorAuth       ErrorClass = "auth"
	ErrorRateLimit  ErrorClass = "rate_limit"
	ErrorBilling    ErrorClass = "billing"
	ErrorContext    ErrorClass = "context"
	ErrorOverloaded ErrorClass = "overloaded"
	ErrorRequest    ErrorClass = "invalid_request"
	ErrorServer     ErrorClass = "server"
	ErrorNetwork    ErrorClass = "network"
	ErrorOther      ErrorClass = "other"
	ErrorOutput     ErrorClass = "output" // no more is known than a line of output
)

// Report is what an agent says by agency report beyond the words of the contract.
type Report string

// The reports.
const (
	ReportsError    Report = "error"
	ReportsComplete Report = "complete"
	ReportsHelp     Report = "help"
	// ReportsStatus goes with a word of the contract, which says the rest; it carries the quiet time.
	ReportsStatus Report = "word"
)

// Evidence is one observation about an agent in one attempt, in the form of a line of events.jsonl. Its texts are the
// agent's, so they are untrusted. At is when agency observed it, never a time that the agent wrote.
type Evidence struct {
	At     time.Time `json:"at"`
	Source Source    `json:"source"`
	Signal Signal    `json:"signal"`
	Event  string    `json:"event,omitempty"` // the agent's own name for it

	ID    string      `json:"id,omitempty"` // of a tool call or a request
	Kind  RequestKind `json:"kind,omitempty"`
	Tool  string      `json:"tool,omitempty"`
	Text  string      `json:"text,omitempty"` // the question, the command, the message; at most EvidenceText bytes
	Class ErrorClass  `json:"class,omitempty"`

	Conversation string `json:"conversation,omitempty"`
	Transcript   string `json:"transcript,omitempty"` // path of the file in which the agent keeps the conversation
	Model        string `json:"model,omitempty"`
	Background   int    `json:"background,omitempty"`
	// Subagent names the helper of the agent that this is about; empty is the agent itself.
	Subagent string `json:"subagent,omitempty"`
	Usage    *Usage `json:"usage,omitempty"`
	// Add says that Usage is of one step and adds up; otherwise it is all so far.
	Add bool `json:"add,omitempty"`
	// Whole says that Usage is of the whole conversation, with what earlier attempts used of it; otherwise it is of this attempt.
	Whole  bool          `json:"whole,omitempty"`
	Report Report        `json:"report,omitempty"`
	Quiet  time.Duration `json:"quiet,omitempty"` // nanoseconds in which no sign is to be expected
	// Confidence of what was read from a screen, above 0 and at most 1.
	Confidence float64 `json:"confidence,omitempty"`
	// Offset is how far the agent's own file was read, in bytes, for evidence from one.
	Offset int64 `json:"offset,omitempty"`
}

// EvidenceText is the most that a text of evidence holds, in bytes; longer ones are cut at a character.
const EvidenceText = 2000

// EvidenceMessage is the most that the last message of a turn holds, in bytes.
const EvidenceMessage = 64 << 10

// EventsFile is the name of the evidence file in an attempt's directory.
const EventsFile = "events.jsonl"

// Sight is what the terminal of an agent shows to one who is about to type. Its texts are the program's, so they are untrusted.
type Sight struct {
	// Dialog is what a dialog or a menu asks; empty when none is to be seen.
	Dialog string
	// Composer is what stands in the agent's input box; nil when none is to be seen.
	Composer *string
	// Boxless is true when no input box is to be seen although agents of this kind always show one when they take a text.
	Boxless bool
}

// holdsLimit is how much of a text's beginning or end must stand in an input box, in characters that are no space.
const holdsLimit = 30

// Holds reports whether a text that was typed stands in the input box, where a long one may stand as a note of what was pasted.
func (s *Sight) Holds(text string) bool {
	if s.Composer == nil {
		return false
	}
	shown, typed := []rune(squeezed(*s.Composer)), []rune(squeezed(text))
	if len(typed) == 0 || len(shown) == 0 {
		return false
	}
	limit := min(holdsLimit, len(typed))
	return strings.Contains(string(shown), string(typed[:limit])) || strings.Contains(string(shown), string(typed[len(typed)-limit:])) ||
		strings.HasPrefix(string(shown), "[Paste")
}

// squeezed is a text without white space: an input box breaks lines where it likes.
func squeezed(text string) string { return strings.Join(strings.Fields(text), "") }
