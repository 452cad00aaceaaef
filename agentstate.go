package agency

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Turn is whether an agent is in a turn.
type Turn string

// The turns.
const (
	TurnUnknown Turn = ""
	TurnWorking Turn = "working"
	TurnEnded   Turn = "ended"
)

// AgentError is an error between an agent and its model.
type AgentError struct {
	Class ErrorClass `json:"class"`
	Text  string     `json:"text"`
	At    time.Time  `json:"at"`
}

// Reported is the newest report of an agent.
type Reported struct {
	Report Report    `json:"report"`
	Text   string    `json:"text"`
	At     time.Time `json:"at"`
}

// Tool is a call of a tool that has not ended.
type Tool struct {
	ID   string    `json:"id"`
	Name string    `json:"name"`
	At   time.Time `json:"at"`
}

// SourceStats describes the newest evidence of one source.
type SourceStats struct {
	At     time.Time `json:"at"`
	Signal Signal    `json:"signal"`
	Event  string    `json:"event"`
	Count  int       `json:"count"` // pieces of evidence from this source in this attempt
}

// AgentState is the sum of an attempt's evidence. Only status.Observe makes it, one piece of
// evidence after the other, so reading the same file again makes the same state.
type AgentState struct {
	Turn     Turn      `json:"turn"`
	TurnAt   time.Time `json:"turn_at"`   // when Turn began
	TurnBy   Source    `json:"turn_by"`   // the source that reported Turn
	PromptAt time.Time `json:"prompt_at"` // the newest prompt; zero when none was seen
	HeardAt  time.Time `json:"heard_at"`  // the newest evidence of any kind about the agent

	Requests    []Request   `json:"requests"`
	Tools       []Tool      `json:"tools"`
	Done        []string    `json:"done"`        // ids of the tool calls that ended last, in order; the newest is last
	Background  int         `json:"background"`  // tasks that continue after the turn
	Interrupted bool        `json:"interrupted"` // the user ended the turn
	Ended       bool        `json:"ended"`       // the agent reported its end
	Retry       *AgentError `json:"retry"`       // the model call is being retried, since At
	Failure     *AgentError `json:"failure"`     // the error that ended the turn
	Reported    *Reported   `json:"reported"`
	QuietUntil  time.Time   `json:"quiet_until"` // until when the agent declared to give no sign
	Printed     *AgentError `json:"printed"`     // the first output line that matches the user's error patterns; nil before there is one
	PrintedAt   time.Time   `json:"printed_at"`  // time of the newest such line

	Todos []Todo `json:"todos"` // the list that the agent keeps of its work, as far as its protocol tells it

	Queue []QueuedMessage `json:"queue"` // messages that the agent has, and has not begun with, the oldest first

	Conversation string `json:"conversation"`
	Transcript   string `json:"transcript"`
	Settings            // what it uses and offers
	Usage        Usage  `json:"usage"`
	// UsageOf is the id of the conversation that Usage covers as a whole, earlier attempts
	// included. When it is empty, Usage covers this attempt alone.
	UsageOf string `json:"usage_of"`
	// Counted holds the model answers that were counted last, the newest last.
	Counted []Counted `json:"counted"`

	Sources map[Source]SourceStats `json:"sources"`
	Unknown map[string]int         `json:"unknown"` // names of events that agency does not know, with their counts
	// Offset is how far events.jsonl was read, in bytes; ReportsOffset is the same for the reports
	// in the worktree, TranscriptOffset for the agent's own file.
	Offset           int64 `json:"offset"`
	ReportsOffset    int64 `json:"reports_offset"`
	TranscriptOffset int64 `json:"transcript_offset"`
}

// AskedAfter reports whether one of the requests was opened after a time, in milliseconds since
// 1970.
func (s *AgentState) AskedAfter(ms int64) bool {
	return slices.ContainsFunc(s.Requests, func(r Request) bool { return r.At.UnixMilli() > ms })
}

// Clone returns a copy that shares nothing that Observe changes in place.
func (s *AgentState) Clone() *AgentState {
	c := *s
	c.Requests, c.Tools = slices.Clone(s.Requests), slices.Clone(s.Tools)
	c.Done = slices.Clone(s.Done)
	c.Sources, c.Unknown = map[Source]SourceStats{}, map[string]int{}
	maps.Copy(c.Sources, s.Sources)
	maps.Copy(c.Unknown, s.Unknown)
	return &c
}

// Todo is one step of the list that an agent keeps of its work. Its text is the agent's: untrusted.
type Todo struct {
	ID    string    `json:"id,omitempty"` // the agent's own; empty where its list always comes whole
	Text  string    `json:"text"`         // on one line
	State TodoState `json:"state"`        // how far it is
}

// FormatTodos returns a list as evidence has it. An id with a blank in it is left out.
func FormatTodos(list []Todo) string {
	var b strings.Builder
	for _, todo := range list {
		b.WriteString(string(todo.State))
		if todo.ID != "" && !strings.ContainsFunc(todo.ID, unicode.IsSpace) {
			b.WriteString("#" + todo.ID)
		}
		b.WriteString(" " + todo.Text + "\n")
	}
	return b.String()
}

// ParseTodos reads a list as evidence has it. It is never nil.
func ParseTodos(lines string) []Todo {
	list := []Todo{}
	for line := range strings.Lines(lines) {
		word, text, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if ok {
			state, id, _ := strings.Cut(word, "#")
			list = append(list, Todo{ID: id, Text: text, State: TodoState(state)})
		}
	}
	return list
}

// TodoState is how far a step is.
type TodoState string

// The states of a step.
const (
	TodoPending    TodoState = "pending"
	TodoInProgress TodoState = "in_progress"
	TodoCompleted  TodoState = "completed"
)

// Words returns the error as text: its class, and the message of the model.
func (t *AgentError) Words() string {
	name := strings.ReplaceAll(string(t.Class), "_", " ")
	if t.Text == "" {
		return name
	}
	return name + ": " + t.Text
}

// CutMark ends the text of a request that is longer than EvidenceText.
const CutMark = "…"

// Request is a question or permission that an agent waits for. Only the user, or a client that acts
// for the user, can answer it.
type Request struct {
	ID         string      `json:"id"`         // the agent's own, or one made of its text; empty while neither exists
	Kind       RequestKind `json:"kind"`       // what kind of answer it needs
	Tool       string      `json:"tool"`       // the tool that it is about, by the agent's name; empty when unknown
	Text       string      `json:"text"`       // the question, or what the tool is to do; untrusted
	At         time.Time   `json:"at"`         // when agency first observed it
	Source     Source      `json:"source"`     // which evidence shows it
	Subagent   string      `json:"subagent"`   // the subagent that asked; empty is the agent itself
	Confidence float64     `json:"confidence"` // 1 unless it was read from a screen
	// Options are the answers that a question names, where the agent speaks its own protocol; else it
	// is empty.
	Options []string `json:"options"`
	// Shown is set when agency saw the agent's program wait for this request. Hooks report a
	// request before its dialog is drawn.
	Shown bool `json:"shown"`
}

// Same reports whether two requests ask for the same, so that an answer to one also answers the
// other.
func (r *Request) Same(o *Request) bool {
	return r.Kind == o.Kind && r.Tool == o.Tool && r.Text == o.Text
}

// Cut reports whether the text is only the beginning of what the agent asks for.
func (r *Request) Cut() bool {
	return strings.HasSuffix(r.Text, CutMark) && len(r.Text) > EvidenceText-utf8.UTFMax
}

// Summary returns the request in a few words. They are the agent's, so they are untrusted.
func (r *Request) Summary() string {
	if r.Kind != AsksPermission || r.Tool == "" {
		return r.Text
	}
	if r.Text == "" {
		return "may it use " + r.Tool + "?"
	}
	return "may it use " + r.Tool + "? " + r.Text
}

// PromptID returns an id of the request that a run with this status waits for, so that an answer to
// an older one can be refused; empty when nothing waits for an answer.
func (s Status) PromptID() string {
	switch {
	case s.Request != nil:
		return s.Request.PromptID()
	case s.Label == NeedsInput, s.Label == Blocked, s.Label == Waiting:
		return strings.ReplaceAll(string(s.Label), " ", "_") + "@" + stamp(s.Since)
	default:
		return ""
	}
}

// Is reports whether a prompt id names this request. The prompt id may be older than the request's
// own id, if a source with less detail came first.
func (r *Request) Is(promptID string) bool {
	return promptID == r.PromptID() || promptID == (&Request{At: r.At}).PromptID()
}

// PromptID returns an id of the request at one moment, so that an answer to an older one is
// refused.
func (r *Request) PromptID() string { return r.ID + "@" + stamp(r.At) }

func stamp(t time.Time) string { return fmt.Sprint(t.UnixMilli()) }

// Decision is the answer to an agent's request for permission.
type Decision string

// The decisions.
const (
	Allow Decision = "allow" // this once
	Deny  Decision = "deny"  // also: declines to answer a question
)

// Reply is the answer to an agent's request: a decision, or text for a question.
type Reply struct {
	Decision Decision // empty when Text answers
	Text     string   // one of the options that it offers, or free text; with Deny, the reason, or empty
}

// Reason returns why the user denies what the agent asks; empty when the reply does not tell.
func (r Reply) Reason() string {
	if r.Decision == "" {
		return ""
	}
	return r.Text
}

// ReplyLimit is the longest text of a reply, in bytes.
const ReplyLimit = 2000

// Validate checks that a reply can be typed at a terminal; else it returns E_USAGE.
func (r Reply) Validate() error {
	switch {
	case r.Decision == "" && r.Text == "", r.Decision == Allow && r.Text != "":
		return Errorf(CodeUsage, "an answer is either a decision, allow or deny, or a text; deny can have a text as its reason")
	case r.Decision != "" && r.Decision != Allow && r.Decision != Deny:
		return Errorf(CodeUsage, "%q is not a decision", string(r.Decision)).WithHint("allow or deny")
	case len(r.Text) > ReplyLimit:
		return Errorf(CodeUsage, "the answer has %d bytes, more than %d", len(r.Text), ReplyLimit).
			WithHint("write it to a file of the worktree and name that in the answer")
	case r.Text != "" && strings.TrimSpace(r.Text) == "":
		return Errorf(CodeUsage, "the answer is empty")
	case !utf8.ValidString(r.Text) || strings.ContainsFunc(r.Text, unicode.IsControl):
		return Errorf(CodeUsage, "the answer is not one line of plain text")
	}
	return nil
}
