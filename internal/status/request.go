package status

import (
	"slices"

	"agency"
)

// Each open request ends by proof alone: its own answer, the end of its tool call, the end of the turn of the agent or helper
// that asked, the word of the program as a whole that it does not wait any more, or its goodbye. A prompt proves nothing: a
// helper's news come as one while another helper's dialog is open.

// ask opens a request. A source that knows less about it than the one before adds nothing.
func (s observer) ask(e agency.Evidence) {
	if e.Source == agency.FromScreen && e.Event == agency.EventComplete {
		s.describe(e)
		return
	}
	s.wait(e.Source)
	if e.ID == "" && len(s.Requests) > 0 || slices.Contains(s.Done, e.ID) {
		return // nothing new, or a hook that came late: what was asked for is done
	}
	r := agency.Request{
		ID: e.ID, Kind: e.Kind, Tool: e.Tool, Text: e.Text, At: e.At, Source: e.Source, Subagent: e.Subagent, Confidence: e.Confidence,
		Shown: shows(e.Source),
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

// describe tells what is asked where a title only told that something is, by a dialog that was read in full. Without such a
// title it may be a quotation. A terminal shows one dialog at a time, so another one takes the place of the one before.
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

// NeedsDetail reports whether a title told of a request which the evidence of a screen describes in full, and nothing did yet.
func NeedsDetail(s *agency.AgentState, shown []agency.Evidence) bool {
	return slices.ContainsFunc(shown, func(e agency.Evidence) bool { return e.Source == agency.FromScreen && e.Event == agency.EventComplete }) &&
		slices.ContainsFunc(s.Requests, func(r agency.Request) bool { return r.Source == agency.FromTitle && r.ID == "" })
}

// show puts the request first whose dialog the terminal shows: a person can answer that one now.
func (s observer) show(id string) {
	if i := s.indexOf(id); i >= 0 {
		r := s.Requests[i]
		r.Shown = true
		s.Requests = slices.Insert(slices.Delete(s.Requests, i, i+1), 0, r)
	}
}

// wait is a program that was seen to do no work: it waits for what is open, if that is just one request.
func (s observer) wait(seen agency.Source) {
	if shows(seen) && len(s.Requests) == 1 {
		s.Requests[0].Shown = true
	}
}

// Vague reports whether a title told of a request that nothing names yet, or several requests are open: the terminal tells more.
func Vague(s *agency.AgentState) bool {
	return len(s.Requests) > 1 || slices.ContainsFunc(s.Requests, func(r agency.Request) bool { return r.Source == agency.FromTitle && r.ID == "" })
}

// answer ends the request with this id. Without one only the program as a whole can tell that it waits for nothing, and a
// screen that it shows no more of what it showed before.
func (s observer) answer(e agency.Evidence) {
	s.drop(func(r *agency.Request) bool {
		if e.ID != "" {
			return r.ID == e.ID
		}
		return e.Subagent == "" && (tellsState(e.Source) || e.Source == agency.FromScreen && r.Source == agency.FromScreen)
	})
}

// dropOf ends what the agent, or one of its helpers, asked in the turn that ended. Where only a title or another view of the
// whole program told of a request, that view tells of its end too.
func (s observer) dropOf(subagent string) {
	s.drop(func(r *agency.Request) bool { return r.Subagent == subagent && !shows(r.Source) })
}

func (s observer) drop(gone func(r *agency.Request) bool) {
	s.Requests = slices.DeleteFunc(s.Requests, func(r agency.Request) bool { return gone(&r) })
}

// tellsState reports whether a source tells the state of the program as a whole, and in it whether that waits for a person.
func tellsState(source agency.Source) bool {
	return source == agency.FromSession || source == agency.FromStream
}

// shows reports whether a source is of what an agent shows rather than tells: it is read later than it was made.
func shows(source agency.Source) bool {
	return source == agency.FromSession || source == agency.FromTitle || source == agency.FromScreen
}

// busy is work. Where it shows from outside, the program does not wait any more for what it was seen to wait for. The sign may be
// older than a request that overtook it, and newer than one whose dialog is to come.
func (s observer) busy(e agency.Evidence) {
	if shows(e.Source) {
		s.drop(func(r *agency.Request) bool { return r.Shown })
		if len(s.Requests) > 0 {
			return
		}
	}
	s.begin(e)
}

// rest is a program that shows no work. A title or a screen that rests has settled what it asked itself; the file in which the
// program keeps its state, and its stream, would tell that it waits.
func (s observer) rest(e agency.Evidence) {
	s.wait(e.Source)
	s.drop(func(r *agency.Request) bool {
		return tellsState(e.Source) || shows(e.Source) && r.Source == e.Source
	})
	if len(s.Requests) == 0 && s.Turn == agency.TurnWorking && s.Background == 0 {
		s.end(e)
	}
}
