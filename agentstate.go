package agency

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Turn is whether an agent works on something.
type Turn string

// The turns.
const (
	TurnUnknown Turn = ""
	TurnWorking Turn = "working"
	TurnEnded   Turn = "ended"
)

// AgentError is an error of an agent with its model.
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

// SourceStats is the newest evidence of one source.
type SourceStats struct {
	At     time.Time `json:"at"`
	Signal Signal    `json:"signal"`
	Event  string    `json:"event"`
	Count  int       `json:"count"` // of evidence from this source in this attempt
}

// AgentState is what the evidence of one attempt comes to. It is made by status.Observe alone, one piece of evidence after the
// other, so reading the same file again makes the same situation.
type AgentState struct {
	Turn     Turn      `json:"turn"`
	TurnAt   time.Time `json:"turn_at"`   // since when
	TurnBy   Source    `json:"turn_by"`   // who said so
	PromptAt time.Time `json:"prompt_at"` // the newest prompt; zero when none was seen
	HeardAt  time.Time `json:"heard_at"`  // the newest evidence of any kind that says something about the agent

	Requests    []Request   `json:"requests"`
	Tools       []Tool      `json:"tools"`
	Done        []string    `json:"done"`        // ids of the tool calls that ended last, the newest last
	Background  int         `json:"background"`  // work that goes on after the turn
	Interrupted bool        `json:"interrupted"` // the turn was ended by a person
	Ended       bool        `json:"ended"`       // the agent said goodbye
	Retry       *AgentError `json:"retry"`       // being tried again, since At
	Failure     *AgentError `json:"failure"`     // ended the turn
	Reported    *Reported   `json:"reported"`
	QuietUntil  time.Time   `json:"quiet_until"` // the agent declared that it would be silent so long
	Printed     *AgentError `json:"printed"`     // the first of the lines of output that the user calls errors; nil before there is one
	PrintedAt   time.Time   `json:"printed_at"`  // the newest of them

	Conversation string `json:"conversation"`
	Transcript   string `json:"transcript"`
	Model        string `json:"model"`
	Usage        Usage  `json:"usage"`
	// UsageOf is the conversation all of which Usage counts, with what earlier attempts used of it; empty is this attempt alone.
	UsageOf string `json:"usage_of"`
	// Counted are the answers of the model that were counted last, the newest last.
	Counted []Counted `json:"counted"`

	Sources map[Source]SourceStats `json:"sources"`
	Unknown map[string]int         `json:"unknown"` // names of events that were not understood, and how often
	// Offset is how far events.jsonl was read, ReportsOffset the reports in the worktree, TranscriptOffset the agent's own file.
	Offset           int64 `json:"offset"`
	ReportsOffset    int64 `json:"reports_offset"`
	TranscriptOffset int64 `json:"transcript_offset"`
}

// AskedAfter reports whether one of the requests was opened after a time, in milliseconds since 1970.
func (s *AgentState) AskedAfter(ms int64) bool {
	return slices.ContainsFunc(s.Requests, func(r Request) bool { return r.At.UnixMilli() > ms })
}

// Clone is a copy that shares nothing that Observe changes in place.
func (s *AgentState) Clone() *AgentState {
	c := *s
	c.Requests, c.Tools = slices.Clone(s.Requests), slices.Clone(s.Tools)
	c.Done = slices.Clone(s.Done)
	c.Sources, c.Unknown = map[Source]SourceStats{}, map[string]int{}
	maps.Copy(c.Sources, s.Sources)
	maps.Copy(c.Unknown, s.Unknown)
	return &c
}

// Words returns the error in words: its class, and what the model said.
func (t *AgentError) Words() string {
	name := strings.ReplaceAll(string(t.Class), "_", " ")
	if t.Text == "" {
		return name
	}
	return name + ": " + t.Text
}
