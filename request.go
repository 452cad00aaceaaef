package agency

import (
	"slices"
	"time"
)

// Request is something that an agent waits for and only a person, or a client that acts for one, can give.
type Request struct {
	ID         string      `json:"id"` // the agent's own, or one made of what is asked; empty while nothing names it
	Kind       RequestKind `json:"kind"`
	Tool       string      `json:"tool"`
	Text       string      `json:"text"`
	At         time.Time   `json:"at"`
	Source     Source      `json:"source"`
	Subagent   string      `json:"subagent"`   // which asked; empty is the agent itself
	Confidence float64     `json:"confidence"` // 1 unless it was read from a screen
	// Shown is set when the agent's program was seen to wait for just this. Hooks tell of a request before its dialog is drawn.
	Shown bool `json:"shown"`
}

// Same reports whether two requests ask for the same, so that an answer to one is one to the other.
func (r *Request) Same(o *Request) bool {
	return r.Kind == o.Kind && r.Tool == o.Tool && r.Text == o.Text
}

// Each open request ends by proof alone: its own answer, the end of its tool call, the end of the turn of the agent or helper
// that asked, the word of the program as a whole that it does not wait any more, or its goodbye. A prompt proves nothing: a
// helper's news come as one while another helper's dialog is open.

// ask opens a request. A source that knows less about it than the one before adds nothing.
func (s *Situation) ask(e Evidence) {
	if e.Source == FromScreen && e.Event == EventComplete {
		s.describe(e)
		return
	}
	s.wait(e.Source)
	if e.ID == "" && len(s.Requests) > 0 || slices.Contains(s.Done, e.ID) {
		return // nothing new, or a hook that came late: what was asked for is done
	}
	r := Request{
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

func (s *Situation) indexOf(id string) int {
	return slices.IndexFunc(s.Requests, func(r Request) bool { return r.ID == id })
}

// describe tells what is asked where a title only told that something is, by a dialog that was read in full. Without such a
// title it may be a quotation. A terminal shows one dialog at a time, so another one takes the place of the one before.
func (s *Situation) describe(e Evidence) {
	i := slices.IndexFunc(s.Requests, func(r Request) bool { return r.Source == FromTitle })
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
func (s *Situation) NeedsDetail(shown []Evidence) bool {
	return slices.ContainsFunc(shown, func(e Evidence) bool { return e.Source == FromScreen && e.Event == EventComplete }) &&
		slices.ContainsFunc(s.Requests, func(r Request) bool { return r.Source == FromTitle && r.ID == "" })
}

// show puts the request first whose dialog the terminal shows: a person can answer that one now.
func (s *Situation) show(id string) {
	if i := s.indexOf(id); i >= 0 {
		r := s.Requests[i]
		r.Shown = true
		s.Requests = slices.Insert(slices.Delete(s.Requests, i, i+1), 0, r)
	}
}

// wait is a program that was seen to do no work: it waits for what is open, if that is just one request.
func (s *Situation) wait(seen Source) {
	if shows(seen) && len(s.Requests) == 1 {
		s.Requests[0].Shown = true
	}
}

// firm reports whether more about a request cannot come soon: it is named, and a program that shows when it waits was seen to.
func (s *Situation) firm(r *Request) bool {
	views := slices.ContainsFunc([]Source{FromSession, FromTitle}, func(view Source) bool { return s.Sources[view].Count > 0 })
	return r.ID != "" && (r.Shown || !views) || r.Source == FromScreen
}

// Vague reports whether a title told of a request that nothing names yet, or several requests are open: the terminal tells more.
func (s *Situation) Vague() bool {
	return len(s.Requests) > 1 || slices.ContainsFunc(s.Requests, func(r Request) bool { return r.Source == FromTitle && r.ID == "" })
}

// answer ends the request with this id. Without one only the program as a whole can tell that it waits for nothing, and a
// screen that it shows no more of what it showed before.
func (s *Situation) answer(e Evidence) {
	s.drop(func(r *Request) bool {
		if e.ID != "" {
			return r.ID == e.ID
		}
		return e.Subagent == "" && (tellsState(e.Source) || e.Source == FromScreen && r.Source == FromScreen)
	})
}

// dropOf ends what the agent, or one of its helpers, asked in the turn that ended. Where only a title or another view of the
// whole program told of a request, that view tells of its end too.
func (s *Situation) dropOf(helper string) {
	s.drop(func(r *Request) bool { return r.Subagent == helper && !shows(r.Source) })
}

// AskedAfter reports whether one of the requests was opened after a time, in milliseconds since 1970.
func (s *Situation) AskedAfter(ms int64) bool {
	return slices.ContainsFunc(s.Requests, func(r Request) bool { return r.At.UnixMilli() > ms })
}

func (s *Situation) drop(gone func(r *Request) bool) {
	s.Requests = slices.DeleteFunc(s.Requests, func(r Request) bool { return gone(&r) })
}

// tellsState reports whether a source tells the state of the program as a whole, and in it whether that waits for a person.
func tellsState(source Source) bool { return source == FromSession || source == FromStream }

// shows reports whether a source is of what an agent shows rather than tells: it is read later than it was made.
func shows(source Source) bool {
	return source == FromSession || source == FromTitle || source == FromScreen
}

// busy is work. Where it shows from outside, the program does not wait any more for what it was seen to wait for. The sign may be
// older than a request that overtook it, and newer than one whose dialog is to come.
func (s *Situation) busy(e Evidence) {
	if shows(e.Source) {
		s.drop(func(r *Request) bool { return r.Shown })
		if len(s.Requests) > 0 {
			return
		}
	}
	s.begin(e)
}

// rest is a program that shows no work. A title or a screen that rests has settled what it asked itself; the file in which the
// program keeps its state, and its stream, would tell that it waits.
func (s *Situation) rest(e Evidence) {
	s.wait(e.Source)
	s.drop(func(r *Request) bool {
		return tellsState(e.Source) || shows(e.Source) && r.Source == e.Source
	})
	if len(s.Requests) == 0 && s.Turn == TurnWorking && s.Background == 0 {
		s.end(e)
	}
}
