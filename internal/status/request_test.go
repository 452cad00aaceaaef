package status_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"agency"
	"agency/internal/status"
)

// proves reports whether a piece of evidence proves that a request is over: its own answer, the end
// of its tool call, the end of the turn of the agent or subagent that asked, the end of the
// program, or a report that the whole program no longer waits.
func proves(e *agency.Evidence, r *agency.Request) bool {
	view := e.Source == agency.FromTitle || e.Source == agency.FromScreen
	program := e.Source == agency.FromSession || e.Source == agency.FromStream
	switch e.Signal {
	case agency.SignalToolEnded:
		return e.ID != "" && e.ID == r.ID
	case agency.SignalAnswered:
		return e.ID != "" && e.ID == r.ID || e.ID == "" && (program || e.Source == agency.FromScreen && r.Source == agency.FromScreen)
	case agency.SignalTurnEnded, agency.SignalFailed, agency.SignalInterrupted:
		return e.Subagent == r.Subagent
	case agency.SignalEnded:
		return e.Subagent == "" || e.Subagent == r.Subagent
	case agency.SignalResting:
		return program || view && r.Source == e.Source
	case agency.SignalBusy:
		return r.Shown && (e.Source == agency.FromSession || view)
	case agency.SignalSession:
		return r.Kind == agency.AsksDialog && r.Source == agency.FromScreen && e.Source != agency.FromTranscript
	case agency.SignalAsked: // in full, on a terminal that shows one dialog at a time
		return r.Source == agency.FromTitle && e.Source == agency.FromScreen && e.Event == agency.EventComplete
	default:
		return false
	}
}

// stands reports whether a request is still open, also when more is known of it now.
func stands(r *agency.Request, now []agency.Request) bool {
	return slices.ContainsFunc(now, func(n agency.Request) bool {
		return n.ID == r.ID || r.ID == "" && n.At.Equal(r.At)
	})
}

// No request ends without a proof, and no prompt, of a user or from a subagent's end, is one.
func TestRequestsEndByProof(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var s agency.AgentState
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			e := anyEvidence().Draw(t, "evidence")
			if rapid.Bool().Draw(t, "asks") { // requests that the rest may refer to
				e.Signal, e.Source = agency.SignalAsked, rapid.SampledFrom([]agency.Source{agency.FromHook, agency.FromSession, agency.FromTitle}).Draw(t, "asker")
			}
			before := s.Clone()
			status.Observe(&s, e)
			for i := range before.Requests {
				r := &before.Requests[i]
				if !stands(r, s.Requests) && !proves(&e, r) {
					t.Fatalf("%+v ended\n%+v", e, *r)
				}
			}
		}
	})
}

// The request whose dialog the terminal shows can be answered, so it comes first. The others stay
// open.
func TestShownRequestStandsFirst(t *testing.T) {
	t.Parallel()
	shown := func(id string) agency.Evidence {
		return agency.Evidence{Source: agency.FromScreen, Signal: agency.SignalShown, ID: id}
	}
	s := observed(permission("1"), permission("2"), permission("3"), shown("3"), shown("4"))
	var ids []string
	for _, r := range s.Requests {
		ids = append(ids, r.ID)
	}
	if !slices.Equal(ids, []string{"3", "1", "2"}) {
		t.Errorf("got %q", ids)
	}
	if s = observed(permission("1"), permission("2"), shown("2"), agency.Evidence{Signal: agency.SignalToolEnded, ID: "2"}); len(s.Requests) != 1 || s.Requests[0].ID != "1" {
		t.Errorf("got %+v", s.Requests)
	}
}

// An interruption ends what the agent asked. The program may report the end of the request before
// it or after it; the agent works on in neither case.
func TestInterruptedRequest(t *testing.T) {
	t.Parallel()
	session := func(signal agency.Signal, id string) agency.Evidence {
		return agency.Evidence{Source: agency.FromSession, Signal: signal, ID: id, Kind: agency.AsksPermission}
	}
	asked, answered, interrupted := session(agency.SignalAsked, "1"), session(agency.SignalAnswered, "1"), session(agency.SignalInterrupted, "")
	for _, order := range [][]agency.Evidence{{answered, interrupted}, {interrupted, answered}} {
		s := observed(append([]agency.Evidence{session(agency.SignalPrompt, ""), asked}, order...)...)
		if len(s.Requests) > 0 || s.Turn != agency.TurnEnded || !s.Interrupted {
			t.Errorf("after %s, %s: %s, interrupted: %t, requests %+v", order[0].Signal, order[1].Signal, s.Turn, s.Interrupted, s.Requests)
		}
	}
}
