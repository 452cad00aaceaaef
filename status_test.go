package agency_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"agency"
)

var (
	begun = time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	now   = begun.Add(time.Hour)
)

// situation is everything that the rules look at.
type situation struct {
	broken, merged, abandoned, attention bool
	state                                agency.State
	word                                 agency.Word // empty when it said nothing readable
	quiet                                time.Duration
}

func (s situation) derive() agency.Status {
	r := &agency.Run{Abandoned: s.abandoned, Attempt: agency.Attempt{State: s.state, CreatedAt: begun}}
	if s.merged {
		r.MergedAt = &now
	}
	if s.attention {
		r.NeedsAttention = "verification failed"
	}
	if s.state != agency.Queued {
		r.Attempt.StartedAt = &begun
	}
	heard := now.Add(-s.quiet)
	if s.word == "" {
		// Without a word the start is the last that was heard.
		r.Attempt.StartedAt = &heard
	} else {
		c := agency.NewContract(begun)
		c.Status, c.Summary, c.HowToTest = s.word, "a summary", "a test"
		c.Questions, c.Blockers = []string{" ", "a question"}, []string{"", "a blocker"}
		r.Attempt.Word = agency.Observed{Contract: &c, At: heard}
	}
	e := agency.Evidence{Run: r, StallThreshold: agency.StallThreshold}
	if s.broken {
		e.RecordProblem = "the record cannot be read"
	}
	return agency.Derive(e, now)
}

// situations are all that differ for the rules: every rule is met alone, and with every other that it can coexist with.
func situations() []situation {
	all := []situation{}
	flags := []bool{false, true}
	for _, state := range agency.States() {
		for _, word := range append(agency.Words(), "") {
			for _, quiet := range []time.Duration{0, agency.StallThreshold - 1, agency.StallThreshold} {
				for _, broken := range flags {
					for _, merged := range flags {
						for _, abandoned := range flags {
							for _, attention := range flags {
								all = append(all, situation{broken, merged, abandoned, attention, state, word, quiet})
							}
						}
					}
				}
			}
		}
	}
	return all
}

// rules are the rules of docs/state-machine.md, each on its own.
func rules() []struct {
	label agency.Label
	holds func(s situation) bool
} {
	says := func(w agency.Word) func(situation) bool {
		return func(s situation) bool {
			return s.word == w && (s.state == agency.Running || s.state == agency.Completed)
		}
	}
	type rule = struct {
		label agency.Label
		holds func(s situation) bool
	}
	return []rule{
		{agency.Broken, func(s situation) bool { return s.broken }},
		{agency.Merged, func(s situation) bool { return s.merged }},
		{agency.Abandoned, func(s situation) bool { return s.abandoned }},
		{agency.LabelFailed, func(s situation) bool { return s.state == agency.Failed }},
		{agency.NeedsAttention, func(s situation) bool { return s.attention }},
		{agency.LabelQueued, func(s situation) bool { return s.state == agency.Queued }},
		{agency.NeedsInput, says(agency.SaysNeedsInput)},
		{agency.ReadyForReview, says(agency.SaysReadyForReview)},
		{agency.Blocked, says(agency.SaysBlocked)},
		{agency.LabelCompleted, func(s situation) bool { return s.state == agency.Completed }},
		{agency.LabelKilled, func(s situation) bool { return s.state == agency.Killed }},
		{agency.Stalled, func(s situation) bool { return s.state == agency.Running && s.quiet >= agency.StallThreshold }},
		{agency.Working, func(s situation) bool { return s.state == agency.Running && s.word == agency.SaysWorking }},
		{agency.Active, func(s situation) bool { return s.state == agency.Running && s.word == "" }},
	}
}

func TestDeriveEveryRule(t *testing.T) {
	t.Parallel()
	won := map[agency.Label]bool{}
	for _, s := range situations() {
		var want agency.Label
		for _, rule := range rules() {
			if rule.holds(s) {
				want = rule.label
				break
			}
		}
		got := s.derive().Label
		if got != want {
			t.Errorf("%+v is %q, want %q", s, got, want)
		}
		won[got] = true
	}
	for _, rule := range rules() {
		if !won[rule.label] {
			t.Errorf("no situation is %q", rule.label)
		}
	}
}

// Two rules that can both hold are decided by their numbers in the document.
func TestDeriveEveryPair(t *testing.T) {
	t.Parallel()
	order := []agency.Label{}
	for _, row := range table(t, "docs/state-machine.md", "#", "status", "when") {
		for label := range strings.SplitSeq(row[1], ", ") {
			order = append(order, agency.Label(label))
		}
	}
	want := slices.DeleteFunc(agency.Labels(), func(l agency.Label) bool { return l == agency.Waiting || l == agency.Idle })
	if !slices.Equal(order, want) {
		t.Errorf("the document orders the statuses %q, the code %q", order, want)
	}
	all, list := situations(), rules()
	pairs := 0
	for i, lower := range list {
		for _, higher := range list[i+1:] {
			for _, s := range all {
				if lower.holds(s) && higher.holds(s) {
					pairs++
					if got := s.derive().Label; slices.Index(order, got) > slices.Index(order, lower.label) {
						t.Errorf("%+v is %q, although it is %q", s, got, lower.label)
					}
				}
			}
		}
	}
	if pairs == 0 {
		t.Error("no two rules hold at once")
	}
}

func TestDeriveWords(t *testing.T) {
	t.Parallel()
	one := 1
	running := agency.Attempt{State: agency.Running, CreatedAt: begun, StartedAt: &begun}
	failed := func(code *int, errorCode agency.Code, text string) *agency.Run {
		return &agency.Run{Attempt: agency.Attempt{State: agency.Failed, EndedAt: &now, ExitCode: code, ErrorCode: errorCode, Error: text}}
	}
	invalid := running
	invalid.Word = agency.Observed{Problem: "not JSON at byte 1", At: begun}
	tests := []struct {
		name    string
		status  agency.Status
		label   agency.Label
		summary string
		since   time.Time
	}{
		{"no record", agency.Derive(agency.Evidence{}, now), agency.Broken, "", time.Time{}},
		{"broken", situation{broken: true}.derive(), agency.Broken, "the record cannot be read", time.Time{}},
		{"needs attention", situation{attention: true, state: agency.Running}.derive(), agency.NeedsAttention, "verification failed", now},
		{"queued", situation{state: agency.Queued, word: agency.SaysWorking}.derive(), agency.LabelQueued, "(starting)", begun},
		{"asks", situation{state: agency.Running, word: agency.SaysNeedsInput}.derive(), agency.NeedsInput, "a question", now},
		{"asked and left", situation{state: agency.Completed, word: agency.SaysNeedsInput}.derive(), agency.NeedsInput, "a question", now},
		{"blocked", situation{state: agency.Running, word: agency.SaysBlocked}.derive(), agency.Blocked, "a blocker", now},
		{"works", situation{state: agency.Running, word: agency.SaysWorking}.derive(), agency.Working, "a summary", now},
		{"asked and killed", situation{state: agency.Killed, word: agency.SaysNeedsInput}.derive(), agency.LabelKilled, "(stopped)", begun},
		{"stalled", situation{state: agency.Running, word: agency.SaysWorking, quiet: 45 * time.Minute}.derive(), agency.Stalled, "(no activity for 45m)", now.Add(-45 * time.Minute)},
		{"failed with a sentence", agency.Derive(agency.Evidence{Run: failed(&one, "", "exit 1")}, now), agency.LabelFailed, "(exit 1)", now},
		{"failed with a status", agency.Derive(agency.Evidence{Run: failed(&one, "", "")}, now), agency.LabelFailed, "(exit 1)", now},
		{"failed with a code", agency.Derive(agency.Evidence{Run: failed(nil, agency.CodeRunnerDisappeared, "")}, now), agency.LabelFailed, "(E_RUNNER_DISAPPEARED)", now},
		{"no word", agency.Derive(agency.Evidence{Run: &agency.Run{Attempt: running}}, now), agency.Active, "", begun},
		{"no threshold", agency.Derive(agency.Evidence{Run: &agency.Run{Attempt: running}}, now.Add(1e6*time.Hour)), agency.Active, "", begun},
		{"an invalid word", agency.Derive(agency.Evidence{Run: &agency.Run{Attempt: invalid}}, now), agency.Active, "invalid status file: not JSON at byte 1", begun},
	}
	for _, tt := range tests {
		if s := tt.status; s.Label != tt.label || s.Summary != tt.summary || !s.Since.Equal(tt.since) {
			t.Errorf("%s: %q, %q since %s; want %q, %q since %s", tt.name, s.Label, s.Summary, s.Since, tt.label, tt.summary, tt.since)
		}
	}
}

// A word that came before the runner started does not make it older than its start.
func TestStallCountsFromTheStart(t *testing.T) {
	t.Parallel()
	c := agency.NewContract(begun)
	started := begun.Add(10 * time.Minute)
	run := &agency.Run{Attempt: agency.Attempt{State: agency.Running, CreatedAt: begun, StartedAt: &started, Word: agency.Observed{Contract: &c, At: begun}}}
	for after, want := range map[time.Duration]agency.Label{
		agency.StallThreshold - 1: agency.Working,
		agency.StallThreshold:     agency.Stalled,
	} {
		e := agency.Evidence{Run: run, StallThreshold: agency.StallThreshold}
		if got := agency.Derive(e, started.Add(after)).Label; got != want {
			t.Errorf("%s after its start it is %q, want %q", after, got, want)
		}
	}
}

func TestParseLabel(t *testing.T) {
	t.Parallel()
	for _, l := range agency.Labels() {
		for _, text := range []string{
			string(l), strings.ReplaceAll(string(l), " ", "-"), strings.ReplaceAll(string(l), " ", "_"), strings.ToUpper(string(l)),
		} {
			if got, err := agency.ParseLabel(text); got != l || err != nil {
				t.Errorf("ParseLabel(%q) = %q, %v", text, got, err)
			}
		}
	}
	for _, text := range []string{"", "need input", "needsinput", " working", "done"} {
		_, err := agency.ParseLabel(text)
		if !agency.IsCode(err, agency.CodeUsage) || !strings.Contains(agency.AsError(err).Hint, "needs-input") {
			t.Errorf("ParseLabel(%q) = %v", text, err)
		}
	}
}

// A label that needs a person is settled, and nothing that works is.
func TestLabelKinds(t *testing.T) {
	t.Parallel()
	for _, l := range agency.Labels() {
		if l.NeedsPerson() != (l.Mark() == "◐") {
			t.Errorf("%s: needs a person is %v, and its mark is %s", l, l.NeedsPerson(), l.Mark())
		}
		if l.NeedsPerson() && !l.Settled() {
			t.Errorf("%s needs a person and is not settled", l)
		}
		if l.Mark() == "●" && l.Settled() {
			t.Errorf("%s works and is settled", l)
		}
	}
}

func TestShortDuration(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 59*time.Second + 999: "59s", time.Minute: "1m", 59 * time.Minute: "59m", time.Hour: "1h",
		2*time.Hour + 5*time.Minute: "2h5m", 24*time.Hour - 1: "23h59m", 24 * time.Hour: "1d", 75 * time.Hour: "3d",
	} {
		if got := agency.ShortDuration(d); got != want {
			t.Errorf("%s is %s, want %s", fmt.Sprint(d), got, want)
		}
	}
}

// A question stands until somebody answers or the agent says something else; a question that comes with the answer is new.
func TestDeriveAnswered(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	asked := start.Add(time.Minute)
	for _, tt := range []struct {
		name  string
		state agency.State
		input time.Duration // after it asked; 0 is never
		word  agency.Word
		want  agency.Label
	}{
		{"not answered", agency.Running, 0, agency.SaysNeedsInput, agency.NeedsInput},
		{"answered", agency.Running, time.Second, agency.SaysNeedsInput, agency.Working},
		{"asked again", agency.Running, -time.Second, agency.SaysNeedsInput, agency.NeedsInput},
		{"blocked and helped", agency.Running, time.Second, agency.SaysBlocked, agency.Working},
		{"answered and gone", agency.Completed, time.Second, agency.SaysNeedsInput, agency.LabelCompleted},
		{"gone without an answer", agency.Completed, 0, agency.SaysNeedsInput, agency.NeedsInput},
		{"a message does not undo an offer", agency.Running, time.Second, agency.SaysReadyForReview, agency.ReadyForReview},
	} {
		c := agency.NewContract(start)
		c.Status, c.Questions, c.Blockers, c.HowToTest = tt.word, []string{"Which?"}, []string{"a wall"}, "look"
		r := agency.Run{Attempt: agency.Attempt{State: tt.state, StartedAt: &start, Word: agency.Observed{Contract: &c, At: asked}}}
		if tt.input != 0 {
			at := asked.Add(tt.input)
			r.Attempt.InputAt = &at
		}
		got := agency.Derive(agency.Evidence{Run: &r, StallThreshold: agency.StallThreshold}, asked.Add(time.Minute))
		if got.Label != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got.Label, tt.want)
		}
	}
}
