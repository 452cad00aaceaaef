package status

import (
	"slices"
	"strings"

	"agency"
)

// An open request ends only by proof: its own answer, the end of its tool call, the end of the turn
// of the agent or subagent that asked, a report of the whole program that it no longer waits, or
// the end of the conversation. A prompt proves nothing: the results of a subagent come as a prompt
// while another subagent's dialog is open.

// ask opens a request. A source that knows less about it than an earlier one adds nothing.
func (s observer) ask(e agency.Evidence) {
	if e.Source == agency.FromScreen && e.Event == agency.EventComplete {
		s.describe(e)
		return
	}
	s.wait(e.Source)
	if e.ID == "" && len(s.Requests) > 0 || slices.Contains(s.Done, e.ID) {
		return // nothing new, or a late hook whose tool call has already ended
	}
	r := agency.Request{
		ID: e.ID, Kind: e.Kind, Tool: e.Tool, Text: e.Text, At: e.At, Source: e.Source, Subagent: e.Subagent, Confidence: e.Confidence,
		Options: options(e.Options), Shown: shows(e.Source),
	}
	if r.Confidence == 0 {
		r.Confidence = 1
	}
	i := s.indexOf(e.ID)
	if i < 0 {
		i = s.indexOf("")
	}
	if i >= 0 {
		r.At, r.Shown = s.Requests[i].At, r.Shown || s.Requests[i].Shown
		s.Requests[i] = r
		return
	}
	if len(s.Requests) < mostRequests {
		s.Requests = append(s.Requests, r)
	}
}

func (s observer) indexOf(id string) int {
	return slices.IndexFunc(s.Requests, func(r agency.Request) bool { return r.ID == id })
}

// describe adds the text of a dialog that was read in full to a request known only from a title.
// Without such a title the text may be a quotation. A terminal shows one dialog at a time, so
// another dialog replaces the one before.
func (s observer) describe(e agency.Evidence) {
	i := slices.IndexFunc(s.Requests, func(r agency.Request) bool { return r.Source == agency.FromTitle })
	if i < 0 || s.Requests[i].ID == e.ID {
		return
	}
	r := s.Requests[i]
	if r.ID != "" {
		r.At = e.At
	}
	r.ID, r.Kind, r.Tool, r.Text, r.Confidence, r.Shown = e.ID, e.Kind, e.Tool, e.Text, e.Confidence, true
	s.Requests[i] = r
}

// NeedsDetail reports whether a title announced a request that the evidence of a screen describes
// in full and that has no description yet.
func NeedsDetail(s *agency.AgentState, shown []agency.Evidence) bool {
	return slices.ContainsFunc(shown, func(e agency.Evidence) bool { return e.Source == agency.FromScreen && e.Event == agency.EventComplete }) &&
		slices.ContainsFunc(s.Requests, func(r agency.Request) bool { return r.Source == agency.FromTitle && r.ID == "" })
}

// show moves the request whose dialog the terminal shows to the front: the user can answer it now.
func (s observer) show(id string) {
	if i := s.indexOf(id); i >= 0 {
		r := s.Requests[i]
		r.Shown = true
		s.Requests = slices.Insert(slices.Delete(s.Requests, i, i+1), 0, r)
	}
}

// wait handles a program that was seen to do no work: if exactly one request is open, the program
// waits for that one.
func (s observer) wait(seen agency.Source) {
	if shows(seen) && len(s.Requests) == 1 {
		s.Requests[0].Shown = true
	}
}

// Vague reports whether a title announced a request that nothing names yet, or several requests are
// open: the terminal shows more.
func Vague(s *agency.AgentState) bool {
	return len(s.Requests) > 1 || slices.ContainsFunc(s.Requests, func(r agency.Request) bool { return r.Source == agency.FromTitle && r.ID == "" })
}

// answered treats an answer as a sign of work, unless the turn is over and no request was open: a
// program may report the end of a request after the interruption that ended it.
func (s observer) answered(e agency.Evidence) {
	open := len(s.Requests)
	s.answer(e)
	if s.Turn != agency.TurnEnded || len(s.Requests) < open {
		s.begin(e)
	}
}

// answer ends the request with this id. Without an id, only the program as a whole can report that
// it waits for nothing, and a screen only that its own earlier dialog is gone.
func (s observer) answer(e agency.Evidence) {
	s.drop(func(r *agency.Request) bool {
		if e.ID != "" {
			return r.ID == e.ID
		}
		return e.Subagent == "" && (tellsState(e.Source) || e.Source == agency.FromScreen && r.Source == agency.FromScreen)
	})
}

// dropOf ends the requests of the agent, or one of its subagents, in the turn that ended. A request
// known only from a title or another view of the whole program ends when that view reports it.
func (s observer) dropOf(subagent string) {
	s.drop(func(r *agency.Request) bool { return r.Subagent == subagent && !shows(r.Source) })
}

func (s observer) drop(gone func(r *agency.Request) bool) {
	s.Requests = slices.DeleteFunc(s.Requests, func(r agency.Request) bool { return gone(&r) })
}

// tellsState reports whether a source reports the state of the program as a whole, including
// whether it waits for an answer.
func tellsState(source agency.Source) bool {
	return source == agency.FromSession || source == agency.FromStream
}

// shows reports whether a source is what an agent displays rather than reports: it is read later
// than it was made.
func shows(source agency.Source) bool {
	return source == agency.FromSession || source == agency.FromTitle || source == agency.FromScreen
}

// busy applies a sign of work. If the sign comes from outside the program, the program no longer
// waits for what it was seen to wait for. The sign may be older than a request that overtook it,
// and newer than one whose dialog is still to come.
func (s observer) busy(e agency.Evidence) {
	if shows(e.Source) {
		s.drop(func(r *agency.Request) bool { return r.Shown })
		if len(s.Requests) > 0 {
			return
		}
	}
	s.begin(e)
}

// rest applies the sign that a program shows no work. A resting title or screen settles the
// requests that it reported itself. The file in which the program keeps its state, and its stream,
// would report waiting.
func (s observer) rest(e agency.Evidence) {
	s.wait(e.Source)
	s.drop(func(r *agency.Request) bool {
		return tellsState(e.Source) || shows(e.Source) && r.Source == e.Source
	})
	if len(s.Requests) == 0 && s.Turn == agency.TurnWorking && s.Background == 0 {
		s.end(e)
	}
}

// options returns the answers that evidence names; never nil.
func options(lines string) []string {
	if lines == "" {
		return []string{}
	}
	return strings.Split(lines, "\n")
}
