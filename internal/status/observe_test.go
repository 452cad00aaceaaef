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

var allSigns = []agency.Sign{
	agency.SignSession, agency.SignPrompt, agency.SignBusy, agency.SignToolStarted, agency.SignToolEnded, agency.SignAsked, agency.SignAnswered,
	agency.SignRetrying, agency.SignFailed, agency.SignTurnEnded, agency.SignInterrupted, agency.SignResting, agency.SignUsage, agency.SignEnded,
	agency.SignReport, agency.SignPrinted, agency.SignShown, agency.SignUnknown, "of the future",
}

// anyEvidence is what an agent, its terminal or who pretends to be one could have spooled.
func anyEvidence() *rapid.Generator[agency.Evidence] {
	return rapid.Custom(func(t *rapid.T) agency.Evidence {
		word := func(label string, words ...string) string { return rapid.SampledFrom(words).Draw(t, label) }
		e := agency.Evidence{
			At:         begun.Add(time.Duration(rapid.IntRange(-100, 5000).Draw(t, "at")) * time.Second),
			Source:     rapid.SampledFrom(append(agency.Sources(), "elsewhere", agency.Source(word("source", "a", "b", "c")))).Draw(t, "source"),
			Sign:       rapid.SampledFrom(allSigns).Draw(t, "sign"),
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

func asJSON(t interface{ Fatal(args ...any) }, s *agency.Situation) string {
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Whatever comes, and wherever the daemon was restarted in between, the situation is the same and stays small.
func TestObserveAnything(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		evidence := rapid.SliceOfN(anyEvidence(), 0, 300).Draw(t, "evidence")
		var whole, pieces agency.Situation
		for i, e := range evidence {
			status.Observe(&whole, e)
			if rapid.IntRange(0, 9).Draw(t, "restart") == 0 {
				var read agency.Situation
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
			f := status.Facts{Run: &agency.Run{Attempt: agency.Attempt{State: state, EndedAt: &now, Situation: whole}}}
			got := status.Derive(f, now).Label
			if offered := state == agency.Killed && got == agency.ReadyForReview; got != agency.LabelKilled && got != agency.LabelFailed && !offered {
				t.Errorf("a %s attempt reads %q", state, got)
			}
		}
	})
}

// observed is what evidence comes to, a second apart.
func observed(evidence ...agency.Evidence) agency.Situation {
	var s agency.Situation
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
	return agency.Evidence{Sign: agency.SignAsked, ID: id, Kind: agency.AsksPermission, Tool: "Bash", Text: "make"}
}

func TestObserve(t *testing.T) {
	t.Parallel()
	prompt := agency.Evidence{Sign: agency.SignPrompt}
	helper := func(sign agency.Sign) agency.Evidence { return agency.Evidence{Sign: sign, Subagent: "helper"} }
	helperAsks := permission("9")
	helperAsks.Subagent = "helper"
	title := func(sign agency.Sign) agency.Evidence { return agency.Evidence{Source: agency.FromTitle, Sign: sign} }
	screen := permission("s")
	screen.Source, screen.Confidence = agency.FromScreen, 0.6
	for _, tt := range []struct {
		name     string
		evidence []agency.Evidence
		turn     agency.Turn
		requests string // their ids
	}{
		{"a helper's end does not end the turn", []agency.Evidence{prompt, helper(agency.SignTurnEnded)}, agency.TurnWorking, ""},
		{"nor does its error", []agency.Evidence{prompt, helper(agency.SignFailed)}, agency.TurnWorking, ""},
		{"nor its goodbye", []agency.Evidence{prompt, helper(agency.SignEnded)}, agency.TurnWorking, ""},
		{"a helper's end takes back what it asked", []agency.Evidence{prompt, permission("1"), helperAsks, helper(agency.SignTurnEnded)}, agency.TurnWorking, "1"},
		{"a helper's work answers nobody else", []agency.Evidence{prompt, permission("1"), helper(agency.SignBusy)}, agency.TurnWorking, "1"},
		{"work goes on in the background", []agency.Evidence{prompt, {Sign: agency.SignTurnEnded, Background: 1}}, agency.TurnWorking, ""},
		{"and then it ends", []agency.Evidence{prompt, {Sign: agency.SignTurnEnded, Background: 1}, {Sign: agency.SignTurnEnded}}, agency.TurnEnded, ""},
		{"the late end of a tool begins no turn", []agency.Evidence{prompt, {Sign: agency.SignTurnEnded}, {Sign: agency.SignToolEnded, ID: "x"}}, agency.TurnEnded, ""},
		{"two requests, one answer", []agency.Evidence{permission("1"), permission("2"), {Sign: agency.SignAnswered, ID: "1"}}, agency.TurnWorking, "2"},
		{"the end of its tool answers a permission", []agency.Evidence{prompt, permission("1"), {Sign: agency.SignToolEnded, ID: "1"}}, agency.TurnWorking, ""},
		{"a title that worked before does not answer", []agency.Evidence{prompt, permission("1"), title(agency.SignBusy)}, agency.TurnWorking, "1"},
		{"a title that rested and works again does", []agency.Evidence{prompt, permission("1"), title(agency.SignResting), title(agency.SignBusy)}, agency.TurnWorking, ""},
		{"a title at rest ends no turn that waits for an answer", []agency.Evidence{prompt, permission("1"), title(agency.SignResting)}, agency.TurnWorking, "1"},
		{"an interruption takes back what was asked", []agency.Evidence{prompt, permission("1"), {Sign: agency.SignInterrupted}}, agency.TurnEnded, ""},
		{"a screen counts where nothing else speaks", []agency.Evidence{screen}, agency.TurnUnknown, "s"},
		{"and not where a hook does", []agency.Evidence{prompt, screen}, agency.TurnWorking, ""},
		{"a dialog is settled when the session begins", []agency.Evidence{
			{Source: agency.FromScreen, Sign: agency.SignAsked, ID: "d", Kind: agency.AsksDialog}, {Sign: agency.SignSession},
		}, agency.TurnUnknown, ""},
		{"what is unknown says nothing", []agency.Evidence{prompt, permission("1"), {Sign: agency.SignUnknown, Event: "New"}}, agency.TurnWorking, "1"},
		{"nor do unknown places", []agency.Evidence{prompt, {Source: "elsewhere", Sign: agency.SignTurnEnded}}, agency.TurnWorking, ""},
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

func TestObserveUsage(t *testing.T) {
	t.Parallel()
	used := func(add bool, in int64, cost float64) agency.Evidence {
		return agency.Evidence{Sign: agency.SignUsage, Add: add, Usage: &agency.Usage{InputTokens: &in, CostUSD: &cost}}
	}
	s := observed(used(true, 10, 0.25), used(true, 5, 0.5), agency.Evidence{Sign: agency.SignUsage})
	if *s.Usage.InputTokens != 15 || *s.Usage.CostUSD != 0.75 || s.Usage.OutputTokens != nil || s.Usage.CachedTokens != nil {
		t.Errorf("got %s", asJSON(t, &s))
	}
	if s = observed(used(false, 10, 1), used(false, 25, 2)); *s.Usage.InputTokens != 25 || *s.Usage.CostUSD != 2 {
		t.Errorf("got %s", asJSON(t, &s))
	}
}

// An agent of a newer version still gives signs of life by what is not understood.
func TestObserveUnknown(t *testing.T) {
	t.Parallel()
	s := observed(agency.Evidence{Sign: agency.SignPrompt}, agency.Evidence{Sign: agency.SignUnknown, Event: "New"}, agency.Evidence{Sign: agency.SignUnknown, Event: "New"})
	if s.Unknown["New"] != 2 || !s.HeardAt.Equal(begun.Add(2*time.Second)) || s.Sources[agency.FromHook].Count != 3 {
		t.Errorf("got %s", asJSON(t, &s))
	}
	s = observed(agency.Evidence{Source: agency.FromReport, Sign: agency.SignUnknown, Event: "unreadable report"})
	if !s.HeardAt.IsZero() {
		t.Errorf("what cannot be read was heard: %s", asJSON(t, &s))
	}
}

// What a title asks is settled when the title shows rest; what a hook asks is not, because a title rests while it waits.
func TestRestSettlesWhatTheSameSourceAsked(t *testing.T) {
	t.Parallel()
	var s agency.Situation
	at := begun
	observe := func(source agency.Source, sign agency.Sign, id string) {
		at = at.Add(time.Second)
		status.Observe(&s, agency.Evidence{At: at, Source: source, Sign: sign, ID: id, Kind: agency.AsksQuestion})
	}
	observe(agency.FromTitle, agency.SignBusy, "")
	observe(agency.FromTitle, agency.SignAsked, "")
	observe(agency.FromTitle, agency.SignResting, "")
	if len(s.Requests) != 0 || s.Turn != agency.TurnEnded {
		t.Errorf("got %+v, turn %q", s.Requests, s.Turn)
	}
	observe(agency.FromHook, agency.SignPrompt, "")
	observe(agency.FromHook, agency.SignAsked, "1")
	observe(agency.FromTitle, agency.SignResting, "")
	if len(s.Requests) != 1 || s.Turn != agency.TurnWorking {
		t.Errorf("got %+v, turn %q", s.Requests, s.Turn)
	}
}

// A hook that asks can come after the tool has ended, when a person was quick: nothing is open then. The same tool asks again
// when it is used again.
func TestAskedTooLate(t *testing.T) {
	t.Parallel()
	started := agency.Evidence{Source: agency.FromHook, Sign: agency.SignToolStarted, ID: "1", Tool: "Bash"}
	asked := agency.Evidence{Source: agency.FromHook, Sign: agency.SignAsked, ID: "1", Kind: agency.AsksPermission, Tool: "Bash"}
	ended := agency.Evidence{Source: agency.FromHook, Sign: agency.SignToolEnded, ID: "1"}
	for name, tt := range map[string]struct {
		evidence []agency.Evidence
		open     int
	}{
		"in order":          {[]agency.Evidence{started, asked}, 1},
		"late":              {[]agency.Evidence{started, ended, asked}, 0},
		"late and in order": {[]agency.Evidence{started, ended, asked, started, asked}, 1},
		"after the turn":    {[]agency.Evidence{started, ended, {Source: agency.FromHook, Sign: agency.SignTurnEnded}, asked}, 0},
	} {
		if s := observed(tt.evidence...); len(s.Requests) != tt.open {
			t.Errorf("%s: %d are open, want %d", name, len(s.Requests), tt.open)
		}
	}
}

// A line of output that is an error says nothing of how the agent does. It stands until a prompt, a message, or work for a while.
func TestPrinted(t *testing.T) {
	t.Parallel()
	printed := func(event, text string) agency.Evidence {
		return agency.Evidence{Source: agency.FromOutput, Sign: agency.SignPrinted, Event: event, Text: text}
	}
	s := observed(agency.Evidence{Sign: agency.SignPrompt}, printed("", "one"), printed(agency.EventContinued, "two"))
	if s.Turn != agency.TurnWorking || !s.HeardAt.Equal(begun) || s.Printed.Text != "one" || !s.PrintedAt.Equal(begun.Add(2*time.Second)) {
		t.Errorf("got %s", asJSON(t, &s))
	}
	a := agency.Attempt{Situation: s}
	if !status.ErrorStands(&a, s.PrintedAt.Add(status.PrintedPatience-1)) || status.ErrorStands(&a, s.PrintedAt.Add(status.PrintedPatience)) {
		t.Error("it stands for another time than its patience")
	}
	if a.InputAt = new(s.PrintedAt); !status.ErrorStands(&a, begun) {
		t.Error("a message that came before is an answer")
	}
	if a.InputAt = new(s.PrintedAt.Add(1)); status.ErrorStands(&a, begun) {
		t.Error("a message is no answer")
	}
	if s = observed(printed("", "one"), agency.Evidence{Sign: agency.SignPrompt}); s.Printed != nil {
		t.Error("a prompt is no answer")
	}
	if s = observed(agency.Evidence{Source: agency.FromOutput, Sign: agency.SignTurnEnded}); s.Turn != agency.TurnUnknown {
		t.Error("output ended a turn")
	}
}
