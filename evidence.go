package agency

import (
	"strings"
	"time"
	"unicode/utf8"
)

// Source is where a piece of evidence about an agent comes from.
type Source string

// The sources of evidence. The contract, the record and the clock need no stream of their own.
const (
	FromProtocol   Source = "protocol"   // the agent told agency in its own protocol
	FromHook       Source = "hook"       // the agent called agency's hook
	FromStream     Source = "stream"     // the structured output of an agent without a terminal
	FromSession    Source = "session"    // the file in which the agent keeps what it is doing
	FromTranscript Source = "transcript" // the file in which the agent keeps the conversation
	FromTitle      Source = "title"      // the title that the agent gave its terminal
	FromScreen     Source = "screen"     // the content of its terminal, the last resort
	FromOutput     Source = "output"     // lines that match the user's error patterns
	FromReport     Source = "report"     // the agent called agency report
)

// Sources returns all sources, the most trusted first.
func Sources() []Source {
	return []Source{FromProtocol, FromHook, FromStream, FromSession, FromTranscript, FromReport, FromTitle, FromScreen, FromOutput}
}

// Signal is what a piece of evidence shows about the agent.
type Signal string

// The signals. Their effects on the agent's state are in status.Observe. Evidence of some has more
// fields: of session Conversation, Transcript, Model and so on; of tool_started ID, Tool and Text; of
// tool_ended ID; of asked those of a Request; of shown and answered ID; of retrying Class; of failed
// Class and Text; of turn_ended Text and Background; of usage Usage; of report Report, Text and
// Quiet; of printed Text and Event, which is EventContinued while the line before still holds; of
// unknown Event; of refused ID and Event.
const (
	SignalSession     Signal = "session"      // a conversation began or became known, with its id, its model and its file
	SignalPrompt      Signal = "prompt"       // the user or agency submitted a prompt: a turn begins
	SignalBusy        Signal = "busy"         // the agent is at work
	SignalToolStarted Signal = "tool_started" // the agent began to use a tool
	SignalToolEnded   Signal = "tool_ended"   // the use of a tool ended
	SignalAsked       Signal = "asked"        // the agent waits for an answer
	SignalShown       Signal = "shown"        // the terminal shows the dialog of an open request
	SignalAnswered    Signal = "answered"     // a request is answered; without an id, the program waits for nothing
	SignalRetrying    Signal = "retrying"     // a call of the model failed and is retried
	SignalFailed      Signal = "failed"       // the turn ended with an error
	SignalTurnEnded   Signal = "turn_ended"   // the turn ended, with the last message and the number of tasks that continue
	SignalInterrupted Signal = "interrupted"  // the user ended the turn
	SignalResting     Signal = "resting"      // the agent shows no work: it has finished, or waits for an answer
	SignalUsage       Signal = "usage"        // the agent reported what it used of its models
	SignalEnded       Signal = "ended"        // the conversation ended, the program is about to exit
	SignalReport      Signal = "report"       // a report of the agent, perhaps with quiet time
	SignalPrinted     Signal = "printed"      // an output line matches one of the user's patterns; its event is again while the line before still holds
	SignalRefused     Signal = "refused"      // the agent made a request that this version does not know and refuses
	SignalTodos       Signal = "todos"        // the agent changed the list that it keeps of its work
	SignalQueue       Signal = "queue"        // the list of messages with which the agent has not begun changed
	SignalSaid        Signal = "said"         // the user said something to the agent in its terminal: Said
	SignalUnknown     Signal = "unknown"      // an event that this version does not know
)

// EventContinued is the Event of an output line that continues the lines printed before it.
const EventContinued = "again"

// EventLost is the Event of evidence that stands for other evidence: agency freed the disk space of that
// before reading it.
const EventLost = "evidence that was dropped before agency read it"

// EventComplete is the Event of screen evidence that holds the whole text of a dialog.
const EventComplete = "in full"

// RequestKind is the kind of answer that an agent waits for.
type RequestKind string

// The kinds of requests.
const (
	AsksPermission RequestKind = "permission" // permission to use a tool
	AsksQuestion   RequestKind = "question"   // an answer in words, or one of the answers that it names
	AsksDialog     RequestKind = "dialog"     // its program needs an answer before it can work: trust, a login, a setting
)

// ErrorClass is the class of an error between an agent and its model.
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
	ErrorOutput     ErrorClass = "output" // only an output line is known
)

// Report is what an agent reports by agency report beyond the status of the contract.
type Report string

// The reports.
const (
	ReportsError    Report = "error"
	ReportsComplete Report = "complete"
	ReportsHelp     Report = "help"
	// ReportsStatus accompanies a status of the contract, which has the details; it carries the
	// quiet time.
	ReportsStatus Report = "word"
)

// Evidence is one observation about an agent in one attempt, in the form of a line of events.jsonl.
// Its texts are the agent's, so they are untrusted. At is when agency observed it, never a time
// that the agent wrote.
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
	// Options are the answers that a request names, one a line.
	Options string `json:"options,omitempty"`

	Conversation string `json:"conversation,omitempty"`
	Transcript   string `json:"transcript,omitempty"` // path of the file in which the agent keeps the conversation
	Model        string `json:"model,omitempty"`
	// PermissionMode is how the agent asks for permission. Models and PermissionModes are what it
	// offers, one a line.
	PermissionMode  string `json:"permission_mode,omitempty"`
	Models          string `json:"models,omitempty"`
	PermissionModes string `json:"permission_modes,omitempty"`
	Background      int    `json:"background,omitempty"`
	// Subagent names the subagent that this is about; empty is the agent itself.
	Subagent string `json:"subagent,omitempty"`
	Usage    *Usage `json:"usage,omitempty"`
	Todos    string `json:"todos,omitempty"` // the list of the agent's work, one step a line: its state, # and its id if it has one, a blank, its text
	// Queue holds the messages that the agent has not begun with, one a line: the id, the sender, the
	// text, with blanks between.
	Queue string `json:"queue,omitempty"`
	Said  *Said  `json:"said,omitempty"`
	// Add reports whether Usage covers one step and must be added; otherwise it is the total so
	// far.
	Add bool `json:"add,omitempty"`
	// Whole reports whether Usage covers the whole conversation, earlier attempts included;
	// otherwise it covers this attempt.
	Whole  bool          `json:"whole,omitempty"`
	Report Report        `json:"report,omitempty"`
	Quiet  time.Duration `json:"quiet,omitempty"` // nanoseconds in which no sign is expected
	// Confidence of a reading of a screen, above 0 and at most 1.
	Confidence float64 `json:"confidence,omitempty"`
	// Offset is how far the agent's own file was read, in bytes, for evidence from such a file.
	Offset int64 `json:"offset,omitempty"`
}

// EvidenceText is the maximum length of a text of evidence, in bytes; longer ones are cut at a
// character boundary.
const EvidenceText = 2000

// EvidenceMessage is the maximum length of the last message of a turn, in bytes.
const EvidenceMessage = 64 << 10

// EventsFile is the name of the evidence file in an attempt's directory.
const EventsFile = "events.jsonl"

// Sight is the content of an agent's terminal that matters before typing. Its texts are the
// program's, so they are untrusted.
type Sight struct {
	// Dialog is the question of a dialog or a menu; empty when none is visible.
	Dialog string
	// Composer is the content of the agent's input box; nil when none is visible.
	Composer *string
	// Boxless reports whether no input box is visible although agents of this kind always show one
	// when they accept text.
	Boxless bool
}

// Typing is what a wrapper is about to type when it asks for a look at the terminal.
type Typing struct {
	Enter bool   // it is the Enter after a text; an older wrapper does not report it
	Last  string // the text that agency typed last; an older wrapper does not report it
	Moved bool   // a key since then may have sent or cleared it
}

// Keeps reports whether a terminal still has, unsent, the text that was typed last. After a key that
// may have sent it, only an input box that shows it proves that: a short text may also be a part of
// what an empty box says, and a paste may be the user's.
func (s *Sight) Keeps(last Typing) bool {
	switch {
	case last.Last == "":
		return false
	case s.Composer == nil:
		return !last.Moved
	case last.Moved && utf8.RuneCountInString(squeezed(last.Last)) < holdsLimit:
		return squeezed(*s.Composer) == squeezed(last.Last)
	case last.Moved && strings.HasPrefix(squeezed(*s.Composer), pasteNote):
		return false
	default:
		return s.Holds(last.Last)
	}
}

// holdsLimit is how many characters of a text's beginning or end, without white space, must be in
// an input box.
const holdsLimit = 30

// Holds reports whether a typed text is in the input box. A long text may appear there as a note
// about the paste.
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
		strings.HasPrefix(string(shown), pasteNote)
}

// pasteNote begins what an input box shows instead of a long text.
const pasteNote = "[Paste"

// squeezed returns a text without white space: an input box breaks lines anywhere.
func squeezed(text string) string { return strings.Join(strings.Fields(text), "") }
