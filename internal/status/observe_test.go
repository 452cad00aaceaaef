package status_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"agency"
	"agency/internal/status"
)

var allSigns = []agency.Signal{
	agency.SignalSession, agency.SignalPrompt, agency.SignalBusy, agency.SignalToolStarted, agency.SignalToolEnded, agency.SignalAsked, agency.SignalAnswered,
	agency.SignalRetrying, agency.SignalFailed, agency.SignalTurnEnded, agency.SignalInterrupted, agency.SignalResting, agency.SignalUsage, agency.SignalEnded,
	agency.SignalReport, agency.SignalPrinted, agency.SignalShown, agency.SignalRefused, agency.SignalUnknown, "of the future",
}

// anyEvidence draws evidence that an agent, its terminal or an impostor could have spooled.
func anyEvidence() *rapid.Generator[agency.Evidence] {
	return rapid.Custom(func(t *rapid.T) agency.Evidence {
		word := func(label string, words ...string) string { return rapid.SampledFrom(words).Draw(t, label) }
		e := agency.Evidence{
			At:         begun.Add(time.Duration(rapid.IntRange(-100, 5000).Draw(t, "at")) * time.Second),
			Source:     rapid.SampledFrom(append(agency.Sources(), "elsewhere", agency.Source(word("source", "a", "b", "c")))).Draw(t, "source"),
			Signal:     rapid.SampledFrom(allSigns).Draw(t, "sign"),
			Event:      rapid.StringN(0, 4, 8).Draw(t, "event"),
			ID:         rapid.StringN(0, 1, 4).Draw(t, "id"),
			Kind:       agency.RequestKind(word("kind", "permission", "question", "dialog", "")),
			Tool:       word("tool", "Bash", ""),
			Text:       word("text", "text", ""),
			Class:      agency.ErrorClass(word("class", "auth", "")),
			Subagent:   word("subagent", "", "", "helper"),
			Background: rapid.IntRange(-1, 2).Draw(t, "background"),
			Report:     agency.Report(word("report", "help", "error", "complete", "word", "")),
			Quiet:      time.Duration(rapid.IntRange(-1, 7200).Draw(t, "quiet")) * time.Second,
			Confidence: rapid.Float64Range(0, 1).Draw(t, "confidence"),
			Offset:     int64(rapid.IntRange(0, 1000).Draw(t, "offset")),
			Add:        rapid.Bool().Draw(t, "add"),
		}
		if rapid.Bool().Draw(t, "usage") {
			e.Usage = &agency.Usage{InputTokens: new(int64(rapid.IntRange(-1, 1000).Draw(t, "tokens")))}
		}
		return e
	})
}

func asJSON(t interface{ Fatal(args ...any) }, s *agency.AgentState) string {
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// For any evidence, and any restarts of the daemon in between, the state is the same and stays
// small.
func TestObserveAnything(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		evidence := rapid.SliceOfN(anyEvidence(), 0, 300).Draw(t, "evidence")
		var whole, pieces agency.AgentState
		for i, e := range evidence {
			status.Observe(&whole, e)
			if rapid.IntRange(0, 9).Draw(t, "restart") == 0 {
				var read agency.AgentState
				if err := json.Unmarshal([]byte(asJSON(t, &pieces)), &read); err != nil {
					t.Fatal(err)
				}
				pieces = *read.Clone()
			}
			before := asJSON(t, &pieces)
			next := pieces.Clone()
			status.Observe(next, evidence[i])
			if asJSON(t, &pieces) != before {
				t.Fatal("a clone changed what it was made of")
			}
			pieces = *next
		}
		if len(evidence) > 0 && asJSON(t, whole.Clone()) != asJSON(t, &pieces) {
			t.Errorf("at once\n%s\nin pieces\n%s", asJSON(t, whole.Clone()), asJSON(t, &pieces))
		}
		s := &whole
		if len(s.Requests) > 32 || len(s.Tools) > 64 || len(s.Unknown) > 32 || len(s.Sources) > len(agency.Sources()) {
			t.Errorf("%d requests, %d tools, %d unknown, %d sources", len(s.Requests), len(s.Tools), len(s.Unknown), len(s.Sources))
		}
		if s.Turn == agency.TurnEnded && (s.Retry != nil || s.Background > 0) {
			t.Errorf("its turn ended, and it works: %s", asJSON(t, s))
		}
		for _, state := range []agency.State{agency.Killed, agency.Failed} {
			f := status.Facts{Run: &agency.Run{Attempt: agency.Attempt{State: state, EndedAt: &now, AgentState: whole}}}
			got := status.Derive(f, now).Label
			if offered := state == agency.Killed && got == agency.ReadyForReview; got != agency.LabelKilled && got != agency.LabelFailed && !offered {
				t.Errorf("a %s attempt reads %q", state, got)
			}
		}
	})
}

// observed returns the state after evidence that is a second apart.
func observed(evidence ...agency.Evidence) agency.AgentState {
	var s agency.AgentState
	for i, e := range evidence {
		e.At = begun.Add(time.Duration(i) * time.Second)
		if e.Source == "" {
			e.Source = agency.FromHook
		}
		status.Observe(&s, e)
	}
	return s
}

func permission(id string) agency.Evidence {
	return agency.Evidence{Signal: agency.SignalAsked, ID: id, Kind: agency.AsksPermission, Tool: "Bash", Text: "make"}
}

func TestObserve(t *testing.T) {
	t.Parallel()
	prompt := agency.Evidence{Signal: agency.SignalPrompt}
	subagent := func(signal agency.Signal) agency.Evidence { return agency.Evidence{Signal: signal, Subagent: "helper"} }
	subagentAsks := permission("9")
	subagentAsks.Subagent = "helper"
	title := func(signal agency.Signal) agency.Evidence {
		return agency.Evidence{Source: agency.FromTitle, Signal: signal}
	}
	written := agency.Evidence{Source: agency.FromTranscript, Signal: agency.SignalPrompt}
	box := agency.Evidence{Source: agency.FromScreen, Signal: agency.SignalSession, Event: "input"}
	screen := permission("s")
	screen.Source, screen.Confidence = agency.FromScreen, 0.6
	for _, tt := range []struct {
		name     string
		evidence []agency.Evidence
		turn     agency.Turn
		requests string // their ids
	}{
		{"a subagent's end does not end the turn", []agency.Evidence{prompt, subagent(agency.SignalTurnEnded)}, agency.TurnWorking, ""},
		{"nor does its error", []agency.Evidence{prompt, subagent(agency.SignalFailed)}, agency.TurnWorking, ""},
		{"nor its goodbye", []agency.Evidence{prompt, subagent(agency.SignalEnded)}, agency.TurnWorking, ""},
		{"a subagent's end takes back what it asked", []agency.Evidence{prompt, permission("1"), subagentAsks, subagent(agency.SignalTurnEnded)}, agency.TurnWorking, "1"},
		{"a subagent's work answers no other request", []agency.Evidence{prompt, permission("1"), subagent(agency.SignalBusy)}, agency.TurnWorking, "1"},
		{"work goes on in the background", []agency.Evidence{prompt, {Signal: agency.SignalTurnEnded, Background: 1}}, agency.TurnWorking, ""},
		{"and then it ends", []agency.Evidence{prompt, {Signal: agency.SignalTurnEnded, Background: 1}, {Signal: agency.SignalTurnEnded}}, agency.TurnEnded, ""},
		{"the late end of a tool begins no turn", []agency.Evidence{prompt, {Signal: agency.SignalTurnEnded}, {Signal: agency.SignalToolEnded, ID: "x"}}, agency.TurnEnded, ""},
		{"two requests, one answer", []agency.Evidence{permission("1"), permission("2"), {Signal: agency.SignalAnswered, ID: "1"}}, agency.TurnWorking, "2"},
		{"the end of its tool answers a permission", []agency.Evidence{prompt, permission("1"), {Signal: agency.SignalToolEnded, ID: "1"}}, agency.TurnWorking, ""},
		{"a title that worked before does not answer", []agency.Evidence{prompt, permission("1"), title(agency.SignalBusy)}, agency.TurnWorking, "1"},
		{"a title that rested and works again does", []agency.Evidence{prompt, permission("1"), title(agency.SignalResting), title(agency.SignalBusy)}, agency.TurnWorking, ""},
		{"a title at rest ends no turn that waits for an answer", []agency.Evidence{prompt, permission("1"), title(agency.SignalResting)}, agency.TurnWorking, "1"},
		{"an interruption takes back what was asked", []agency.Evidence{prompt, permission("1"), {Signal: agency.SignalInterrupted}}, agency.TurnEnded, ""},
		{"a screen counts where nothing else speaks", []agency.Evidence{screen}, agency.TurnUnknown, "s"},
		{"and not where a hook does", []agency.Evidence{prompt, screen}, agency.TurnWorking, ""},
		{"a dialog is settled when the session begins", []agency.Evidence{
			{Source: agency.FromScreen, Signal: agency.SignalAsked, ID: "d", Kind: agency.AsksDialog}, {Signal: agency.SignalSession},
		}, agency.TurnUnknown, ""},
		{"and stays when a transcript begins beside it", []agency.Evidence{
			{Source: agency.FromScreen, Signal: agency.SignalAsked, ID: "d", Kind: agency.AsksDialog}, {Source: agency.FromTranscript, Signal: agency.SignalSession},
		}, agency.TurnUnknown, "d"},
		{"a still terminal ends a turn that the title missed", []agency.Evidence{title(agency.SignalResting), written, box}, agency.TurnEnded, ""},
		{"and none that the title shows", []agency.Evidence{title(agency.SignalResting), written, title(agency.SignalBusy), box}, agency.TurnWorking, ""},
		{"and none without a title", []agency.Evidence{written, box}, agency.TurnWorking, ""},
		{"what is unknown says nothing", []agency.Evidence{prompt, permission("1"), {Signal: agency.SignalUnknown, Event: "New"}}, agency.TurnWorking, "1"},
		{"nor do unknown places", []agency.Evidence{prompt, {Source: "elsewhere", Signal: agency.SignalTurnEnded}}, agency.TurnWorking, ""},
	} {
		s := observed(tt.evidence...)
		var ids []string
		for _, r := range s.Requests {
			ids = append(ids, r.ID)
		}
		if got := strings.Join(ids, " "); s.Turn != tt.turn || got != tt.requests {
			t.Errorf("%s: turn %q, requests %q; want %q, %q", tt.name, s.Turn, got, tt.turn, tt.requests)
		}
	}
}

// A prompt undoes the report before it, and not the one that followed it, although it is read late.
func TestPromptAndReport(t *testing.T) {
	t.Parallel()
	for at, undone := range map[time.Duration]bool{-time.Second: false, time.Second: true} {
		var s agency.AgentState
		status.Observe(&s, agency.Evidence{Source: agency.FromReport, Signal: agency.SignalReport, Report: agency.ReportsComplete, At: begun})
		status.Observe(&s, agency.Evidence{Source: agency.FromSession, Signal: agency.SignalPrompt, At: begun.Add(at)})
		if (s.Reported == nil) != undone || s.Turn != agency.TurnWorking {
			t.Errorf("a prompt %s after the report: got %+v", at, s.Reported)
		}
	}
}

func TestObserveUsage(t *testing.T) {
	t.Parallel()
	used := func(add bool, in int64, cost float64) agency.Evidence {
		return agency.Evidence{Signal: agency.SignalUsage, Add: add, Usage: &agency.Usage{InputTokens: &in, CostUSD: &cost}}
	}
	s := observed(used(true, 10, 0.25), used(true, 5, 0.5), agency.Evidence{Signal: agency.SignalUsage})
	if *s.Usage.InputTokens != 15 || *s.Usage.CostUSD != 0.75 || s.Usage.OutputTokens != nil || s.Usage.CachedTokens != nil {
		t.Errorf("got %s", asJSON(t, &s))
	}
	if s = observed(used(false, 10, 1), used(false, 25, 2)); *s.Usage.InputTokens != 25 || *s.Usage.CostUSD != 2 {
		t.Errorf("got %s", asJSON(t, &s))
	}
}

// Unknown evidence of a newer agent is still a sign of life.
func TestObserveUnknown(t *testing.T) {
	t.Parallel()
	s := observed(agency.Evidence{Signal: agency.SignalPrompt}, agency.Evidence{Signal: agency.SignalUnknown, Event: "New"}, agency.Evidence{Signal: agency.SignalUnknown, Event: "New"})
	if s.Unknown["New"] != 2 || !s.HeardAt.Equal(begun.Add(2*time.Second)) || s.Sources[agency.FromHook].Count != 3 {
		t.Errorf("got %s", asJSON(t, &s))
	}
	s = observed(agency.Evidence{Source: agency.FromReport, Signal: agency.SignalUnknown, Event: "unreadable report"})
	if !s.HeardAt.IsZero() {
		t.Errorf("what cannot be read was heard: %s", asJSON(t, &s))
	}
}

// A title's request is settled when the title shows rest; a hook's request is not, because the
// title also rests while the agent waits.
func TestRestSettlesWhatTheSameSourceAsked(t *testing.T) {
	t.Parallel()
	var s agency.AgentState
	at := begun
	observe := func(source agency.Source, signal agency.Signal, id string) {
		at = at.Add(time.Second)
		status.Observe(&s, agency.Evidence{At: at, Source: source, Signal: signal, ID: id, Kind: agency.AsksQuestion})
	}
	observe(agency.FromTitle, agency.SignalBusy, "")
	observe(agency.FromTitle, agency.SignalAsked, "")
	observe(agency.FromTitle, agency.SignalResting, "")
	if len(s.Requests) != 0 || s.Turn != agency.TurnEnded {
		t.Errorf("got %+v, turn %q", s.Requests, s.Turn)
	}
	observe(agency.FromHook, agency.SignalPrompt, "")
	observe(agency.FromHook, agency.SignalAsked, "1")
	observe(agency.FromTitle, agency.SignalResting, "")
	if len(s.Requests) != 1 || s.Turn != agency.TurnWorking {
		t.Errorf("got %+v, turn %q", s.Requests, s.Turn)
	}
}

// A hook's request can arrive after the tool has ended, when the user was quick: nothing is open
// then. Another use of the same tool asks again.
func TestAskedTooLate(t *testing.T) {
	t.Parallel()
	started := agency.Evidence{Source: agency.FromHook, Signal: agency.SignalToolStarted, ID: "1", Tool: "Bash"}
	asked := agency.Evidence{Source: agency.FromHook, Signal: agency.SignalAsked, ID: "1", Kind: agency.AsksPermission, Tool: "Bash"}
	ended := agency.Evidence{Source: agency.FromHook, Signal: agency.SignalToolEnded, ID: "1"}
	for name, tt := range map[string]struct {
		evidence []agency.Evidence
		open     int
	}{
		"in order":          {[]agency.Evidence{started, asked}, 1},
		"late":              {[]agency.Evidence{started, ended, asked}, 0},
		"late and in order": {[]agency.Evidence{started, ended, asked, started, asked}, 1},
		"after the turn":    {[]agency.Evidence{started, ended, {Source: agency.FromHook, Signal: agency.SignalTurnEnded}, asked}, 0},
	} {
		if s := observed(tt.evidence...); len(s.Requests) != tt.open {
			t.Errorf("%s: %d are open, want %d", name, len(s.Requests), tt.open)
		}
	}
}

// An error line says nothing about the agent's activity. It stays until a prompt, a message, or a
// while of work.
func TestPrinted(t *testing.T) {
	t.Parallel()
	printed := func(event, text string) agency.Evidence {
		return agency.Evidence{Source: agency.FromOutput, Signal: agency.SignalPrinted, Event: event, Text: text}
	}
	s := observed(agency.Evidence{Signal: agency.SignalPrompt}, printed("", "one"), printed(agency.EventContinued, "two"))
	if s.Turn != agency.TurnWorking || !s.HeardAt.Equal(begun) || s.Printed.Text != "one" || !s.PrintedAt.Equal(begun.Add(2*time.Second)) {
		t.Errorf("got %s", asJSON(t, &s))
	}
	a := agency.Attempt{AgentState: s}
	if !status.ErrorStands(&a, s.PrintedAt.Add(status.PrintedTimeout-1)) || status.ErrorStands(&a, s.PrintedAt.Add(status.PrintedTimeout)) {
		t.Error("it stands for another time than its timeout")
	}
	if a.InputAt = new(s.PrintedAt); !status.ErrorStands(&a, begun) {
		t.Error("a message that came before is an answer")
	}
	if a.InputAt = new(s.PrintedAt.Add(1)); status.ErrorStands(&a, begun) {
		t.Error("a message is no answer")
	}
	if s = observed(printed("", "one"), agency.Evidence{Signal: agency.SignalPrompt}); s.Printed != nil {
		t.Error("a prompt is no answer")
	}
	if s = observed(agency.Evidence{Source: agency.FromOutput, Signal: agency.SignalTurnEnded}); s.Turn != agency.TurnUnknown {
		t.Error("output ended a turn")
	}
}
