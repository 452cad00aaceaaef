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

// Seen is the newest evidence of one source.
type Seen struct {
	At    time.Time `json:"at"`
	Sign  Sign      `json:"sign"`
	Event string    `json:"event"`
	Count int       `json:"count"` // of evidence from this source in this attempt
}

// Situation is what the evidence of one attempt comes to. It is made by Observe alone, one piece of evidence after the
// other, so reading the same file again makes the same situation.
type Situation struct {
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

	Sources map[Source]Seen `json:"sources"`
	Unknown map[string]int  `json:"unknown"` // names of events that were not understood, and how often
	// Offset is how far events.jsonl was read, ReportsOffset the reports in the worktree, TranscriptOffset the agent's own file.
	Offset           int64 `json:"offset"`
	ReportsOffset    int64 `json:"reports_offset"`
	TranscriptOffset int64 `json:"transcript_offset"`
}

// The most that a situation remembers of what an agent can make up without end.
const (
	mostRequests = 32
	mostTools    = 64
	mostDone     = 16
	mostUnknown  = 32
)

// Observe takes one piece of evidence. Evidence comes in the order in which it was observed; clocks may jump, so its times
// decide nothing here.
func (s *Situation) Observe(e Evidence) {
	if !slices.Contains(Sources(), e.Source) {
		s.countUnknown("from " + Clip(string(e.Source)))
		return
	}
	s.remember(e)
	if e.Source == FromOutput {
		s.print(e) // it says nothing of how the agent itself does
		return
	}
	if e.Sign == SignShown {
		s.show(e.ID)
		return
	}
	if s.outdone(e.Source) || e.Sign == SignUnknown && e.Source != FromHook && e.Source != FromStream {
		return
	}
	// An agent that says something new to us still gives a sign of life.
	s.HeardAt = e.At
	if e.Subagent != "" {
		s.observeHelper(e)
		return
	}
	s.observe(e)
}

// observe takes what the agent itself does.
func (s *Situation) observe(e Evidence) {
	switch e.Sign {
	case SignSession:
		s.identify(e)
	case SignPrompt:
		s.begin(e)
		s.PromptAt, s.Reported, s.QuietUntil, s.Printed = e.At, nil, time.Time{}, nil
	case SignBusy:
		s.busy(e)
	case SignToolStarted:
		s.begin(e)
		s.Done = slices.DeleteFunc(s.Done, func(id string) bool { return id == e.ID })
		if len(s.Tools) < mostTools {
			s.Tools = append(s.Tools, Tool{ID: e.ID, Name: e.Tool, At: e.At})
		}
	case SignToolEnded:
		s.toolEnded(e)
	case SignAsked:
		s.ask(e)
	case SignAnswered:
		s.begin(e)
		s.answer(e)
	case SignRetrying:
		since := e.At
		if s.Retry != nil && s.Retry.Class == e.Class {
			since = s.Retry.At
		}
		s.begin(e)
		s.Retry = &AgentError{Class: e.Class, Text: e.Text, At: since}
	case SignFailed:
		s.end(e)
		s.Failure = &AgentError{Class: e.Class, Text: e.Text, At: e.At}
	case SignTurnEnded:
		s.turnEnded(e)
	case SignInterrupted:
		s.end(e)
		s.Interrupted = true
	case SignResting:
		s.rest(e)
	case SignUsage:
		s.use(e)
	case SignEnded:
		// Its exit follows and says how it went; until then nobody needs to act because of this.
		s.Requests, s.Tools, s.Retry, s.Ended = nil, nil, nil, true
	case SignReport:
		s.report(e)
	case SignPrinted, SignShown, SignUnknown:
	}
}

// print takes a line of output that the user calls an error.
func (s *Situation) print(e Evidence) {
	if e.Sign != SignPrinted {
		return
	}
	if s.Printed == nil || e.Event != EventContinued {
		s.Printed = &AgentError{Class: ErrorOutput, Text: e.Text, At: e.At}
	}
	s.PrintedAt = e.At
}

// observeHelper takes what a helper of the agent does. It works for the agent, and asks in its place; that it begins or
// ends says nothing about the agent's own turn.
func (s *Situation) observeHelper(e Evidence) {
	switch e.Sign {
	case SignToolStarted, SignToolEnded, SignAsked, SignUsage, SignRetrying:
		s.observe(e)
	case SignBusy, SignPrompt:
		s.begin(e)
	case SignAnswered:
		s.begin(e)
		s.answer(e)
	case SignTurnEnded, SignFailed, SignInterrupted, SignEnded:
		s.dropOf(e.Subagent)
	case SignSession, SignResting, SignReport, SignPrinted, SignShown, SignUnknown:
	}
}

// remember counts the evidence of each source.
func (s *Situation) remember(e Evidence) {
	if s.Sources == nil {
		s.Sources = map[Source]Seen{}
	}
	seen := s.Sources[e.Source]
	s.Sources[e.Source] = Seen{At: e.At, Sign: e.Sign, Event: e.Event, Count: seen.Count + 1}
	switch {
	case e.Offset == 0:
	case e.Source == FromTranscript:
		s.TranscriptOffset = e.Offset
	case e.Source == FromReport:
		s.ReportsOffset = e.Offset
	}
	if e.Sign == SignUnknown {
		s.countUnknown(e.Event)
	}
}

// countUnknown counts what was not understood, by name as far as there is room.
func (s *Situation) countUnknown(name string) {
	if s.Unknown == nil {
		s.Unknown = map[string]int{}
	}
	if _, known := s.Unknown[name]; known || len(s.Unknown) < mostUnknown {
		s.Unknown[name]++
	}
}

// outdone says that a source says nothing new: of a screen, because the agent itself has spoken in this attempt; of a title,
// because the agent keeps a file that says the same, and says waiting from resting.
func (s *Situation) outdone(source Source) bool {
	_, keeps := s.Sources[FromSession]
	return source == FromScreen && s.SpokeForItself() || source == FromTitle && keeps
}

// SpokeForItself says that the agent told how it does by more than what its terminal shows. A transcript does not: a dialog
// beside the conversation is not in it.
func (s *Situation) SpokeForItself() bool {
	for _, source := range []Source{FromHook, FromStream, FromSession} {
		if _, spoke := s.Sources[source]; spoke {
			return true
		}
	}
	return false
}

func (s *Situation) identify(e Evidence) {
	if e.Conversation != "" && e.Conversation != s.Conversation {
		s.Conversation = e.Conversation
	}
	if e.Transcript != "" && e.Transcript != s.Transcript {
		s.Transcript, s.TranscriptOffset = e.Transcript, e.Offset
	}
	if e.Model != "" {
		s.Model = e.Model
	}
	s.Ended = false
	// What a program wanted before it began, which only its terminal told, is settled when it has begun.
	s.drop(func(r *Request) bool { return r.Kind == AsksDialog && r.Source == FromScreen })
}

// begin puts the agent at work.
func (s *Situation) begin(e Evidence) {
	if s.Turn != TurnWorking {
		s.Turn, s.TurnAt, s.TurnBy = TurnWorking, e.At, e.Source
	}
	s.Interrupted, s.Failure, s.Retry, s.Ended = false, nil, nil, false
}

// end puts the agent at rest; nothing of its turn is open any more. What a helper asks in the background may be.
func (s *Situation) end(e Evidence) {
	if s.Turn != TurnEnded {
		s.Turn, s.TurnAt, s.TurnBy = TurnEnded, e.At, e.Source
	}
	s.dropOf("")
	s.Tools, s.Retry, s.Background = nil, nil, 0
	s.Interrupted, s.Failure = false, nil
}

// turnEnded ends a turn, unless work goes on behind it.
func (s *Situation) turnEnded(e Evidence) {
	if e.Background == 0 {
		s.end(e)
		return
	}
	s.begin(e)
	s.dropOf("")
	s.Background, s.Tools = e.Background, nil
}

// toolEnded takes a tool's end as a sign of work, unless the turn is over: the news of a last tool may come late.
func (s *Situation) toolEnded(e Evidence) {
	open := len(s.Tools)
	if e.ID != "" {
		s.Done = append(slices.Clone(s.Done[max(0, len(s.Done)-mostDone+1):]), e.ID)
	}
	s.Tools = slices.DeleteFunc(s.Tools, func(t Tool) bool { return t.ID == e.ID })
	if s.Turn != TurnEnded || len(s.Tools) < open {
		s.begin(e)
	}
	if e.ID != "" {
		s.answer(e)
	}
}

func (s *Situation) report(e Evidence) {
	s.QuietUntil = time.Time{}
	if e.Quiet > 0 {
		s.QuietUntil = e.At.Add(e.Quiet)
	}
	s.Reported = nil
	if e.Report != ReportsWord {
		s.Reported = &Reported{Report: e.Report, Text: e.Text, At: e.At}
	}
}

// SameMeaning says that two situations look alike to people: what differs is only counters and newer evidence of the same.
func (s *Situation) SameMeaning(o *Situation) bool {
	sameTrouble := func(a, b *AgentError) bool { return (a == nil) == (b == nil) && (a == nil || a.Class == b.Class) }
	sameReport := func(a, b *Reported) bool {
		return (a == nil) == (b == nil) && (a == nil || a.Report == b.Report && a.Text == b.Text && a.At.Equal(b.At))
	}
	samePrinted := func(a, b *AgentError) bool { return (a == nil) == (b == nil) && (a == nil || a.At.Equal(b.At)) }
	return s.Turn == o.Turn && s.PromptAt.Equal(o.PromptAt) && s.Interrupted == o.Interrupted && s.Ended == o.Ended &&
		slices.Equal(s.Requests, o.Requests) && (s.Background > 0) == (o.Background > 0) &&
		sameTrouble(s.Retry, o.Retry) && sameTrouble(s.Failure, o.Failure) && sameReport(s.Reported, o.Reported) &&
		samePrinted(s.Printed, o.Printed) && s.QuietUntil.Equal(o.QuietUntil) && s.Conversation == o.Conversation && s.Transcript == o.Transcript && s.Model == o.Model
}

// Clone is a copy that shares nothing that Observe changes in place.
func (s *Situation) Clone() *Situation {
	c := *s
	c.Requests, c.Tools = slices.Clone(s.Requests), slices.Clone(s.Tools)
	c.Done = slices.Clone(s.Done)
	c.Sources, c.Unknown = map[Source]Seen{}, map[string]int{}
	maps.Copy(c.Sources, s.Sources)
	maps.Copy(c.Unknown, s.Unknown)
	return &c
}

// words are what a trouble is called in a table.
func (t *AgentError) words() string {
	name := strings.ReplaceAll(string(t.Class), "_", " ")
	if t.Text == "" {
		return name
	}
	return name + ": " + t.Text
}
