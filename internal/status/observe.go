package status

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"agency"
	"agency/internal/plain"
)

// The limits for data in an agent's state that an agent could let grow without end.
const (
	mostRequests = 32
	mostTools    = 64
	mostDone     = 16
	mostUnknown  = 32
)

// observer applies evidence to an agent's state.
type observer struct{ *agency.AgentState }

// Observe applies one piece of evidence to the state of its attempt. Evidence comes in the order in
// which it was observed; clocks may jump, so its times decide one thing alone: a prompt that was read
// late does not undo the report that followed it.
func Observe(agentState *agency.AgentState, e agency.Evidence) {
	s := observer{agentState}
	if !slices.Contains(agency.Sources(), e.Source) {
		s.countUnknown("from " + plain.Clip(string(e.Source)))
		return
	}
	if e.Signal == agency.SignalSaid {
		return // it shows nothing of the agent
	}
	s.remember(e)
	if e.Source == agency.FromOutput {
		s.print(e) // it shows nothing of the agent's own state
		return
	}
	if e.Signal == agency.SignalShown {
		s.show(e.ID)
		return
	}
	if s.superseded(e.Source) || e.Signal == agency.SignalUnknown && e.Source != agency.FromHook && e.Source != agency.FromStream && e.Source != agency.FromProtocol {
		return
	}
	// An event that agency does not know is still a sign of life.
	s.HeardAt = e.At
	if e.Subagent != "" {
		s.observeSubagent(e)
		return
	}
	s.observe(e)
}

// observe applies evidence of the agent itself.
func (s observer) observe(e agency.Evidence) {
	switch e.Signal {
	case agency.SignalSession:
		s.identify(e)
	case agency.SignalPrompt:
		s.begin(e)
		s.PromptAt = e.At
		if s.Reported == nil || !s.Reported.At.After(e.At) {
			s.Reported, s.QuietUntil, s.Printed = nil, time.Time{}, nil
		}
	case agency.SignalBusy:
		s.busy(e)
	case agency.SignalToolStarted:
		s.begin(e)
		s.Done = slices.DeleteFunc(s.Done, func(id string) bool { return id == e.ID })
		if len(s.Tools) < mostTools {
			s.Tools = append(s.Tools, agency.Tool{ID: e.ID, Name: e.Tool, At: e.At})
		}
	case agency.SignalToolEnded:
		s.toolEnded(e)
	case agency.SignalAsked:
		s.ask(e)
	case agency.SignalAnswered:
		s.answered(e)
	case agency.SignalRetrying:
		since := e.At
		if s.Retry != nil && s.Retry.Class == e.Class {
			since = s.Retry.At
		}
		s.begin(e)
		s.Retry = &agency.AgentError{Class: e.Class, Text: e.Text, At: since}
	case agency.SignalFailed:
		s.end(e)
		s.Failure = &agency.AgentError{Class: e.Class, Text: e.Text, At: e.At}
	case agency.SignalTurnEnded:
		s.turnEnded(e)
	case agency.SignalInterrupted:
		s.end(e)
		s.drop(func(r *agency.Request) bool { return r.Subagent == "" && r.Source == e.Source })
		s.Interrupted = true
	case agency.SignalResting:
		s.rest(e)
	case agency.SignalUsage:
		s.use(e)
	case agency.SignalEnded:
		// The exit record follows and has the outcome; until then this needs no action.
		s.Requests, s.Tools, s.Retry, s.Ended = nil, nil, nil, true
	case agency.SignalReport:
		s.report(e)
	case agency.SignalTodos:
		s.Todos = agency.ParseTodos(e.Todos)
	case agency.SignalQueue:
		s.Queue = agency.ParseQueue(e.Queue)
	case agency.SignalPrinted, agency.SignalShown, agency.SignalRefused, agency.SignalSaid, agency.SignalUnknown:
	}
}

// print applies an output line that matches the user's error patterns.
func (s observer) print(e agency.Evidence) {
	if e.Signal != agency.SignalPrinted {
		return
	}
	if s.Printed == nil || e.Event != agency.EventContinued {
		s.Printed = &agency.AgentError{Class: agency.ErrorOutput, Text: e.Text, At: e.At}
	}
	s.PrintedAt = e.At
}

// observeSubagent applies evidence of a subagent. It works for the agent and asks in its place; its
// beginning and end say nothing about the agent's own turn.
func (s observer) observeSubagent(e agency.Evidence) {
	switch e.Signal {
	case agency.SignalToolStarted, agency.SignalToolEnded, agency.SignalAsked, agency.SignalUsage, agency.SignalRetrying:
		s.observe(e)
	case agency.SignalBusy, agency.SignalPrompt:
		s.begin(e)
	case agency.SignalAnswered:
		s.answered(e)
	case agency.SignalTurnEnded, agency.SignalFailed, agency.SignalInterrupted, agency.SignalEnded:
		s.dropOf(e.Subagent)
	case agency.SignalSession, agency.SignalResting, agency.SignalReport, agency.SignalTodos, agency.SignalQueue, agency.SignalPrinted, agency.SignalShown, agency.SignalRefused, agency.SignalSaid, agency.SignalUnknown:
	}
}

// remember counts the evidence of each source.
func (s observer) remember(e agency.Evidence) {
	if s.Sources == nil {
		s.Sources = map[agency.Source]agency.SourceStats{}
	}
	seen := s.Sources[e.Source]
	s.Sources[e.Source] = agency.SourceStats{At: e.At, Signal: e.Signal, Event: e.Event, Count: seen.Count + 1}
	switch {
	case e.Offset == 0:
	case e.Source == agency.FromTranscript:
		s.TranscriptOffset = e.Offset
	case e.Source == agency.FromReport:
		s.ReportsOffset = e.Offset
	}
	if e.Signal == agency.SignalUnknown || e.Signal == agency.SignalRefused {
		s.countUnknown(e.Event)
	}
}

// countUnknown counts an unknown event, by name as far as there is room.
func (s observer) countUnknown(name string) {
	if s.Unknown == nil {
		s.Unknown = map[string]int{}
	}
	if _, known := s.Unknown[name]; known || len(s.Unknown) < mostUnknown {
		s.Unknown[name]++
	}
}

// superseded reports whether a source has nothing to add: a screen when the agent itself has
// reported in this attempt; a title when the agent keeps a file with the same information that also
// distinguishes waiting from resting.
func (s observer) superseded(source agency.Source) bool {
	_, keeps := s.Sources[agency.FromSession]
	return source == agency.FromScreen && SpokeForItself(s.AgentState) || source == agency.FromTitle && keeps
}

// SpokeForItself reports whether the agent reported its state by more than its terminal. A
// transcript does not count: it lacks a dialog beside the conversation.
func SpokeForItself(s *agency.AgentState) bool {
	for _, source := range []agency.Source{agency.FromProtocol, agency.FromHook, agency.FromStream, agency.FromSession} {
		if _, spoke := s.Sources[source]; spoke {
			return true
		}
	}
	return false
}

func (s observer) identify(e agency.Evidence) {
	if e.Conversation != "" && e.Conversation != s.Conversation {
		s.Conversation = e.Conversation
	}
	if e.Transcript != "" && e.Transcript != s.Transcript {
		s.Transcript, s.TranscriptOffset = e.Transcript, e.Offset
	}
	s.Model, s.PermissionMode = cmp.Or(e.Model, s.Model), cmp.Or(e.PermissionMode, s.PermissionMode)
	if e.Models != "" {
		s.Models = strings.Split(e.Models, "\n")
	}
	if e.PermissionModes != "" {
		s.PermissionModes = strings.Split(e.PermissionModes, "\n")
	}
	s.Ended = false
	// A dialog before the start, known from the terminal alone, is settled once the program has
	// begun. A transcript may begin beside it.
	if e.Source != agency.FromTranscript {
		s.drop(func(r *agency.Request) bool { return r.Kind == agency.AsksDialog && r.Source == agency.FromScreen })
	}
	if e.Source == agency.FromScreen && MayRest(s.AgentState) {
		s.end(e)
	}
}

// MayRest reports whether an input box on a terminal that is still would end the turn: only a
// transcript reported the turn, and the title, which shows work, has been at rest since before. A
// title can miss a short turn.
func MayRest(s *agency.AgentState) bool {
	return s.Turn == agency.TurnWorking && s.TurnBy == agency.FromTranscript && len(s.Requests) == 0 && s.Background == 0 &&
		s.Sources[agency.FromTitle].Signal == agency.SignalResting
}

// begin begins a turn.
func (s observer) begin(e agency.Evidence) {
	if s.Turn != agency.TurnWorking {
		s.Turn, s.TurnAt, s.TurnBy = agency.TurnWorking, e.At, e.Source
	}
	s.Interrupted, s.Failure, s.Retry, s.Ended = false, nil, nil, false
}

// end ends the turn and everything open in it. A request of a subagent in the background may stay
// open.
func (s observer) end(e agency.Evidence) {
	if s.Turn != agency.TurnEnded {
		s.Turn, s.TurnAt, s.TurnBy = agency.TurnEnded, e.At, e.Source
	}
	s.dropOf("")
	s.Tools, s.Retry, s.Background = nil, nil, 0
	s.Interrupted, s.Failure = false, nil
}

// turnEnded ends a turn, unless background work continues.
func (s observer) turnEnded(e agency.Evidence) {
	if e.Background == 0 {
		s.end(e)
		return
	}
	s.begin(e)
	s.dropOf("")
	s.Background, s.Tools = e.Background, nil
}

// toolEnded treats a tool's end as a sign of work, unless the turn is over: the event of a last
// tool may come late.
func (s observer) toolEnded(e agency.Evidence) {
	open := len(s.Tools)
	if e.ID != "" {
		s.Done = append(slices.Clone(s.Done[max(0, len(s.Done)-mostDone+1):]), e.ID)
	}
	s.Tools = slices.DeleteFunc(s.Tools, func(t agency.Tool) bool { return t.ID == e.ID })
	if s.Turn != agency.TurnEnded || len(s.Tools) < open {
		s.begin(e)
	}
	if e.ID != "" {
		s.answer(e)
	}
}

func (s observer) report(e agency.Evidence) {
	s.QuietUntil = time.Time{}
	if e.Quiet > 0 {
		s.QuietUntil = e.At.Add(e.Quiet)
	}
	s.Reported = nil
	if e.Report != agency.ReportsStatus {
		s.Reported = &agency.Reported{Report: e.Report, Text: e.Text, At: e.At}
	}
}

// SameMeaning reports whether two states look the same to users: they differ only in counters and
// in newer evidence of the same kind.
func SameMeaning(s, o *agency.AgentState) bool {
	sameTrouble := func(a, b *agency.AgentError) bool {
		return (a == nil) == (b == nil) && (a == nil || a.Class == b.Class)
	}
	sameReport := func(a, b *agency.Reported) bool {
		return (a == nil) == (b == nil) && (a == nil || a.Report == b.Report && a.Text == b.Text && a.At.Equal(b.At))
	}
	samePrinted := func(a, b *agency.AgentError) bool { return (a == nil) == (b == nil) && (a == nil || a.At.Equal(b.At)) }
	return s.Turn == o.Turn && s.PromptAt.Equal(o.PromptAt) && s.Interrupted == o.Interrupted && s.Ended == o.Ended &&
		slices.EqualFunc(s.Requests, o.Requests, sameRequest) && (s.Background > 0) == (o.Background > 0) &&
		sameTrouble(s.Retry, o.Retry) && sameTrouble(s.Failure, o.Failure) && sameReport(s.Reported, o.Reported) &&
		samePrinted(s.Printed, o.Printed) && s.QuietUntil.Equal(o.QuietUntil) && s.Conversation == o.Conversation && s.Transcript == o.Transcript && s.Model == o.Model &&
		s.PermissionMode == o.PermissionMode && slices.Equal(s.Models, o.Models) && slices.Equal(s.PermissionModes, o.PermissionModes)
}

func sameRequest(a, b agency.Request) bool {
	return a.ID == b.ID && a.Same(&b) && a.At.Equal(b.At) && a.Source == b.Source && a.Subagent == b.Subagent &&
		a.Confidence == b.Confidence && a.Shown == b.Shown && slices.Equal(a.Options, b.Options)
}
