package status_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/status"
)

var (
	begun = time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	now   = begun.Add(time.Hour)
)

// example holds all inputs of the rules.
type example struct {
	broken, merged, abandoned, attention bool
	state                                agency.State
	headless                             bool
	word                                 agency.ReportedStatus // empty without a readable report
	kind                                 kind
	quiet                                time.Duration // time since the newest sign
	gone                                 bool          // no session
}

// kind is a combination of evidence of an attempt. Its last piece is the newest sign; the agent's
// status file is 2 seconds older.
type kind struct {
	name     string
	evidence []agency.Evidence // a negative At is before the newest sign
	turn     agency.Turn
	open     bool         // a request
	reports  agency.Label // by a report
	older    bool         // the report is older than the status file
	prompted bool         // after the status file
	message  bool         // sent after the contract
	declared bool         // a quiet time
}

func before(d time.Duration, e agency.Evidence) agency.Evidence {
	e.At = now.Add(-d)
	if e.Source == "" {
		e.Source = agency.FromHook
	}
	return e
}

// kinds returns all kinds of evidence that make a difference.
func kinds() []kind {
	prompt := before(5*time.Second, agency.Evidence{Signal: agency.SignalPrompt})
	list := func(e ...agency.Evidence) []agency.Evidence { return e }
	then := func(e agency.Evidence) []agency.Evidence { return list(prompt, before(0, e)) }
	asks := agency.Evidence{Signal: agency.SignalAsked, ID: "1", Kind: agency.AsksPermission, Tool: "Bash", Text: "rm -r build"}
	question := agency.Evidence{Source: agency.FromStream, Signal: agency.SignalAsked, ID: "2", Kind: agency.AsksQuestion, Text: "a question"}
	dialog := agency.Evidence{Source: agency.FromScreen, Signal: agency.SignalAsked, ID: "3", Kind: agency.AsksDialog, Text: "Trust?", Confidence: 0.8}
	report := func(r agency.Report, quiet time.Duration) agency.Evidence {
		return agency.Evidence{Source: agency.FromReport, Signal: agency.SignalReport, Report: r, Text: "a report", Quiet: quiet}
	}
	return []kind{
		{name: "nothing"},
		{name: "an unknown event", evidence: list(before(0, agency.Evidence{Signal: agency.SignalUnknown, Event: "New"}))},
		{name: "a message", message: true},
		{name: "at work", turn: agency.TurnWorking, evidence: then(agency.Evidence{Signal: agency.SignalToolStarted, Tool: "Edit"})},
		{name: "the tool that wrote the contract", turn: agency.TurnWorking, evidence: then(agency.Evidence{Signal: agency.SignalToolEnded})},
		{name: "busy on its screen", turn: agency.TurnWorking, evidence: list(before(0, agency.Evidence{Source: agency.FromScreen, Signal: agency.SignalBusy}))},
		{name: "at work in the background", turn: agency.TurnWorking, evidence: then(agency.Evidence{Signal: agency.SignalTurnEnded, Background: 2})},
		{name: "a helper's end", turn: agency.TurnWorking, evidence: then(agency.Evidence{Signal: agency.SignalTurnEnded, Subagent: "helper"})},
		{name: "tries again", turn: agency.TurnWorking, evidence: then(agency.Evidence{Signal: agency.SignalRetrying, Class: agency.ErrorOverloaded})},
		{name: "prompted", turn: agency.TurnWorking, prompted: true, evidence: list(before(0, agency.Evidence{Signal: agency.SignalPrompt}))},
		{name: "its turn ended", turn: agency.TurnEnded, evidence: then(agency.Evidence{Signal: agency.SignalTurnEnded})},
		{name: "an error", turn: agency.TurnEnded, evidence: then(agency.Evidence{Signal: agency.SignalFailed, Class: agency.ErrorBilling})},
		{name: "interrupted", turn: agency.TurnEnded, evidence: then(agency.Evidence{Signal: agency.SignalInterrupted})},
		{name: "its title rests", turn: agency.TurnEnded, evidence: then(agency.Evidence{Source: agency.FromTitle, Signal: agency.SignalResting})},
		{name: "a permission", turn: agency.TurnWorking, open: true, evidence: then(asks)},
		{name: "a question", turn: agency.TurnWorking, open: true, evidence: then(question)},
		{name: "a dialog", open: true, evidence: list(before(0, dialog))},
		{name: "answered", turn: agency.TurnWorking, evidence: list(prompt, before(3*time.Second, asks), before(0, agency.Evidence{Signal: agency.SignalAnswered, ID: "1"}))},
		{name: "help", reports: agency.NeedsInput, evidence: list(before(0, report(agency.ReportsHelp, 0)))},
		{name: "complete", reports: agency.ReadyForReview, evidence: list(before(0, report(agency.ReportsComplete, 0)))},
		{name: "error", reports: agency.Blocked, evidence: list(before(0, report(agency.ReportsError, 0)))},
		{name: "help, then a word", reports: agency.NeedsInput, older: true, turn: agency.TurnWorking, evidence: list(
			before(3*time.Second, report(agency.ReportsHelp, 0)), before(0, agency.Evidence{Signal: agency.SignalBusy}))},
		{name: "quiet for an hour", declared: true, evidence: list(before(0, report(agency.ReportsStatus, time.Hour)))},
	}
}

func (x *example) facts() status.Facts {
	r := &agency.Run{Abandoned: x.abandoned, Attempt: agency.Attempt{Number: 1, State: x.state, Headless: x.headless, CreatedAt: begun}}
	a := &r.Attempt
	if x.merged {
		r.MergedAt = &now
	}
	if x.attention {
		r.Flag = &agency.Flag{Reason: "verification failed", By: agency.User, At: now}
	}
	if x.state != agency.Queued {
		a.StartedAt = &begun
	}
	heard := now.Add(-x.quiet)
	for _, e := range x.kind.evidence {
		e.At = e.At.Add(-x.quiet)
		status.Observe(&a.AgentState, e)
	}
	said := heard.Add(-2 * time.Second)
	switch {
	case x.kind.message:
		a.InputAt = &heard
	case len(x.kind.evidence) > 0:
	case x.word == "":
		a.StartedAt = &heard // without a report the start is the newest sign
	default:
		said = heard
	}
	if x.word != "" {
		c := agency.NewContract(begun)
		c.Status, c.Summary, c.HowToTest = x.word, "a summary", "a test"
		c.Questions, c.Blockers = []string{" ", "a question"}, []string{"", "a blocker"}
		a.Reported = agency.Observed{Contract: &c, At: said}
	}
	f := status.Facts{Run: r, StallThreshold: agency.StallThreshold, SessionGone: x.gone}
	if x.broken {
		f.RecordProblem = "the record cannot be read"
	}
	return f
}

func (x example) derive() agency.Status { return status.Derive(x.facts(), now) }

// says returns the label that the agent reported, by its status file or a report, unless it was
// answered.
func (x *example) says() agency.Label {
	label := map[agency.ReportedStatus]agency.Label{
		agency.ReportedNeedsInput: agency.NeedsInput, agency.ReportedBlocked: agency.Blocked, agency.ReportedReadyForReview: agency.ReadyForReview,
	}[x.word]
	k := &x.kind
	if k.reports != "" && (!k.older || x.word == "") {
		label = k.reports
	}
	if k.prompted || k.message && label != agency.ReadyForReview {
		return ""
	}
	if stands := x.alive() || x.state == agency.Completed || x.state == agency.Killed && label == agency.ReadyForReview; !stands {
		return ""
	}
	return label
}

func (x *example) alive() bool { return x.state == agency.Running }

// rests returns false without a terminal: such an agent ends with its turn.
func (x *example) rests() bool { return x.kind.turn == agency.TurnEnded && !x.headless }

func (x *example) atWork() bool {
	return x.kind.turn == agency.TurnWorking || x.kind.turn == agency.TurnEnded && x.headless || x.word != ""
}

// examples returns all combinations that differ for the rules: every rule occurs alone, and with
// every other rule that can hold at the same time.
func examples() []example {
	all := []example{}
	all = append(all, example{})
	each := func(change func(x *example, n int), n int) {
		grown := make([]example, 0, len(all)*n)
		for _, x := range all {
			for i := range n {
				y := x
				change(&y, i)
				grown = append(grown, y)
			}
		}
		all = grown
	}
	words, evidence := append(agency.Words(), ""), kinds()
	states := []agency.State{agency.Queued, agency.Running, agency.Completed, agency.Failed, agency.Killed}
	ages := []time.Duration{0, agency.StallThreshold - 1, agency.StallThreshold}
	each(func(x *example, n int) { x.broken = n == 1 }, 2)
	each(func(x *example, n int) { x.merged = n == 1 }, 2)
	each(func(x *example, n int) { x.abandoned = n == 1 }, 2)
	each(func(x *example, n int) { x.attention = n == 1 }, 2)
	each(func(x *example, n int) { x.headless = n == 1 }, 2)
	each(func(x *example, n int) { x.gone = n == 1 }, 2)
	each(func(x *example, n int) { x.state = states[n] }, len(states))
	each(func(x *example, n int) { x.word = words[n] }, len(words))
	each(func(x *example, n int) { x.quiet = ages[n] }, len(ages))
	each(func(x *example, n int) { x.kind = evidence[n] }, len(evidence))
	return all
}

// row is a rule of docs/state-machine.md in the terms of the examples.
type row struct {
	label agency.Label
	holds func(x *example) bool
}

func rows() []row {
	return []row{
		{agency.Broken, func(x *example) bool { return x.broken }},
		{agency.Merged, func(x *example) bool { return x.merged }},
		{agency.Abandoned, func(x *example) bool { return x.abandoned }},
		{agency.LabelFailed, func(x *example) bool { return x.state == agency.Failed }},
		{agency.NeedsAttention, func(x *example) bool { return x.attention }},
		{agency.LabelQueued, func(x *example) bool { return x.state == agency.Queued }},
		{agency.NeedsInput, func(x *example) bool {
			open := x.kind.open && (x.alive() || x.state == agency.Completed && x.headless)
			return open || x.says() == agency.NeedsInput
		}},
		{agency.ReadyForReview, func(x *example) bool { return x.says() == agency.ReadyForReview }},
		{agency.Blocked, func(x *example) bool { return x.says() == agency.Blocked }},
		{agency.LabelCompleted, func(x *example) bool { return x.state == agency.Completed }},
		{agency.LabelKilled, func(x *example) bool { return x.state == agency.Killed }},
		{agency.Stalled, func(x *example) bool {
			return x.alive() && x.quiet >= agency.StallThreshold && !x.kind.declared && !x.rests() && (x.atWork() || !x.gone)
		}},
		{agency.Waiting, func(x *example) bool { return x.alive() && x.rests() }},
		{agency.Working, func(x *example) bool { return x.alive() && x.atWork() }},
		{agency.Active, func(x *example) bool { return x.alive() && !x.gone }},
		{agency.Idle, func(*example) bool { return true }},
	}
}

// Every rule decides something, and the order of the rules decides between two that hold at once.
func TestDeriveEveryRuleAndPair(t *testing.T) {
	t.Parallel()
	all, list := examples(), rows()
	type pair struct{ higher, lower agency.Label }
	won, pairs := map[agency.Label]bool{}, map[pair]bool{}
	for i := range all {
		x := &all[i]
		var hold []agency.Label
		for _, row := range list {
			if row.holds(x) {
				hold = append(hold, row.label)
			}
		}
		got := x.derive().Label
		if got != hold[0] {
			t.Fatalf("%+v is %q, want %q", *x, got, hold[0])
		}
		won[got] = true
		for _, lower := range hold[1:] {
			pairs[pair{got, lower}] = true
		}
	}
	for i, higher := range list {
		if !won[higher.label] {
			t.Errorf("no example is %q", higher.label)
		}
		for _, lower := range list[i+1:] {
			if !pairs[pair{higher.label, lower.label}] && !apart(higher.label, lower.label) {
				t.Errorf("no example is %q rather than %q", higher.label, lower.label)
			}
		}
	}
}

// apart reports whether two rules cannot hold at once: an attempt is in one state and has one
// newest report, and a turn that ended is not stalled.
func apart(a, b agency.Label) bool {
	ended := []agency.Label{agency.LabelFailed, agency.LabelQueued, agency.LabelKilled}
	spoken := []agency.Label{agency.NeedsInput, agency.ReadyForReview, agency.Blocked}
	alive := []agency.Label{agency.Stalled, agency.Waiting, agency.Working, agency.Active}
	in := func(list []agency.Label, l agency.Label) bool { return slices.Contains(list, l) }
	switch {
	case in(ended, a):
		return in(ended, b) || in(spoken, b) || in(alive, b) || b == agency.LabelCompleted
	case a == agency.LabelCompleted:
		return b == agency.LabelKilled || in(alive, b)
	case in(spoken, a):
		return b == agency.LabelKilled && a != agency.ReadyForReview || in(spoken, b) && a != agency.NeedsInput
	default:
		return a == agency.Stalled && b == agency.Waiting
	}
}

// The document lists the rules in the code's order.
func TestRulesAgreeWithTheDocument(t *testing.T) {
	t.Parallel()
	rules, shared := status.Rules(), ""
	want := "| # | status | when |\n|---|---|---|\n"
	for i, rule := range rules {
		if i+1 < len(rules) && rules[i+1].Number == rule.Number {
			shared += string(rule.Label) + ", "
			continue
		}
		want += fmt.Sprintf("| %d | %s%s | %s |\n", rule.Number, shared, rule.Label, rule.When)
		shared = ""
	}
	document, err := os.ReadFile("../../docs/state-machine.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rows, _ := strings.Cut(string(document), "\n| # |")
	rows, _, _ = strings.Cut("| # |"+rows, "\n\n")
	if diff := cmp.Diff(want, rows+"\n"); diff != "" {
		t.Errorf("(-code +document)\n%s", diff)
	}
	labels := []agency.Label{}
	for _, rule := range rules {
		labels = append(labels, rule.Label)
	}
	if diff := cmp.Diff(agency.Labels(), labels); diff != "" {
		t.Errorf("(-labels +rules)\n%s", diff)
	}
}

func TestDeriveWords(t *testing.T) {
	t.Parallel()
	one := 1
	running := agency.Attempt{State: agency.Running, CreatedAt: begun, StartedAt: &begun}
	failed := func(code *int, errorCode agency.Code, text string) *agency.Run {
		return &agency.Run{Attempt: agency.Attempt{State: agency.Failed, EndedAt: &now, ExitCode: code, ErrorCode: errorCode, Error: text}}
	}
	leaving := running
	leaving.Headless = true
	status.Observe(&leaving.AgentState, agency.Evidence{Source: agency.FromStream, Signal: agency.SignalTurnEnded, At: begun})
	invalid := running
	invalid.Reported = agency.Observed{Problem: "not JSON at byte 1", At: begun}
	tests := []struct {
		name    string
		status  agency.Status
		label   agency.Label
		summary string
		since   time.Time
	}{
		{"no record", status.Derive(status.Facts{}, now), agency.Broken, "", time.Time{}},
		{"broken", example{broken: true}.derive(), agency.Broken, "the record cannot be read", time.Time{}},
		{"needs attention", example{attention: true, state: agency.Running}.derive(), agency.NeedsAttention, "verification failed", now},
		{"queued", example{state: agency.Queued, word: agency.ReportedWorking}.derive(), agency.LabelQueued, "(starting)", begun},
		{"asks", example{state: agency.Running, word: agency.ReportedNeedsInput}.derive(), agency.NeedsInput, "a question", now},
		{"asked and left", example{state: agency.Completed, word: agency.ReportedNeedsInput}.derive(), agency.NeedsInput, "a question", now},
		{"blocked", example{state: agency.Running, word: agency.ReportedBlocked}.derive(), agency.Blocked, "a blocker", now},
		{"works", example{state: agency.Running, word: agency.ReportedWorking}.derive(), agency.Working, "a summary", now},
		{"asked and killed", example{state: agency.Killed, word: agency.ReportedNeedsInput}.derive(), agency.LabelKilled, "(stopped)", begun},
		{"stalled", example{state: agency.Running, word: agency.ReportedWorking, quiet: 45 * time.Minute}.derive(), agency.Stalled, "(no activity for 45m)", now.Add(-45 * time.Minute)},
		{"failed with a sentence", status.Derive(status.Facts{Run: failed(&one, "", "exit 1")}, now), agency.LabelFailed, "(exit 1)", now},
		{"failed with a status", status.Derive(status.Facts{Run: failed(&one, "", "")}, now), agency.LabelFailed, "(exit 1)", now},
		{"failed with a code", status.Derive(status.Facts{Run: failed(nil, agency.CodeRunnerDisappeared, "")}, now), agency.LabelFailed, "(E_RUNNER_DISAPPEARED)", now},
		{"no word", status.Derive(status.Facts{Run: &agency.Run{Attempt: running}}, now), agency.Active, "", begun},
		{"no threshold", status.Derive(status.Facts{Run: &agency.Run{Attempt: running}}, now.Add(1e6*time.Hour)), agency.Active, "", begun},
		{"about to leave", status.Derive(status.Facts{Run: &agency.Run{Attempt: leaving}}, now), agency.Working, "", begun},
		{"an invalid word", status.Derive(status.Facts{Run: &agency.Run{Attempt: invalid}}, now), agency.Active, "invalid status file: not JSON at byte 1", begun},
	}
	for _, tt := range tests {
		if s := tt.status; s.Label != tt.label || s.Summary != tt.summary || !s.Since.Equal(tt.since) {
			t.Errorf("%s: %q, %q since %s; want %q, %q since %s", tt.name, s.Label, s.Summary, s.Since, tt.label, tt.summary, tt.since)
		}
	}
}

// A report from before the start does not make the last sign older than the start.
func TestStallCountsFromTheStart(t *testing.T) {
	t.Parallel()
	c := agency.NewContract(begun)
	started := begun.Add(10 * time.Minute)
	run := &agency.Run{Attempt: agency.Attempt{State: agency.Running, CreatedAt: begun, StartedAt: &started, Reported: agency.Observed{Contract: &c, At: begun}}}
	for after, want := range map[time.Duration]agency.Label{
		agency.StallThreshold - 1: agency.Active,
		agency.StallThreshold:     agency.Stalled,
	} {
		e := status.Facts{Run: run, StallThreshold: agency.StallThreshold}
		if got := status.Derive(e, started.Add(after)).Label; got != want {
			t.Errorf("%s after its start it is %q, want %q", after, got, want)
		}
	}
}

// The boundary is exact, counts from the newest sign of any kind, and a run's own threshold
// overrides the default.
func TestStallBoundary(t *testing.T) {
	t.Parallel()
	newest := begun.Add(20 * time.Minute)
	word := agency.NewContract(begun)
	signal := func(e agency.Evidence) agency.Attempt {
		a := agency.Attempt{State: agency.Running, StartedAt: &begun}
		e.At = newest
		status.Observe(&a.AgentState, e)
		return a
	}
	for name, a := range map[string]agency.Attempt{
		"contract": {State: agency.Running, StartedAt: &begun, Reported: agency.Observed{Contract: &word, At: newest}},
		"start":    {State: agency.Running, StartedAt: &newest},
		"hook":     signal(agency.Evidence{Source: agency.FromHook, Signal: agency.SignalToolStarted}),
		"unknown":  signal(agency.Evidence{Source: agency.FromHook, Signal: agency.SignalUnknown}),
		"stream":   signal(agency.Evidence{Source: agency.FromStream, Signal: agency.SignalRetrying}),
		"message":  {State: agency.Running, StartedAt: &begun, InputAt: &newest},
	} {
		for _, own := range []time.Duration{0, time.Minute} {
			r := agency.Run{Attempt: a, StallAfterMS: own.Milliseconds()}
			limit := agency.StallThreshold
			if own > 0 {
				limit = own
			}
			f := status.Facts{Run: &r, StallThreshold: agency.StallThreshold}
			if got := status.Derive(f, newest.Add(limit-1)).Label; got == agency.Stalled {
				t.Errorf("%s: stalled too early", name)
			}
			if got := status.Derive(f, newest.Add(limit)); got.Label != agency.Stalled || !got.Since.Equal(newest) || got.Decided != agency.ByClock {
				t.Errorf("%s: %+v, want stalled since %s", name, got, newest)
			}
		}
	}
	quiet := signal(agency.Evidence{Source: agency.FromReport, Signal: agency.SignalReport, Report: agency.ReportsStatus, Quiet: time.Hour})
	f := status.Facts{Run: &agency.Run{Attempt: quiet}, StallThreshold: agency.StallThreshold}
	if got := status.Derive(f, newest.Add(time.Hour-1)).Label; got != agency.Active {
		t.Errorf("in its quiet time it is %q", got)
	}
	if got := status.Derive(f, newest.Add(time.Hour)).Label; got != agency.Stalled {
		t.Errorf("after its quiet time it is %q", got)
	}
}

// A request shows although the run was flagged before it, and can be answered although the run was
// flagged since.
func TestFlagAndRequest(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		x       example
		flagged time.Time
		label   agency.Label
		prompt  string
	}{
		"a permission after it": {example{state: agency.Running, kind: kind{evidence: []agency.Evidence{before(0, permission("1"))}}}, now.Add(-time.Second), agency.NeedsInput, "1@"},
		"before it":             {example{state: agency.Running, kind: kind{evidence: []agency.Evidence{before(0, permission("1"))}}}, now, agency.NeedsAttention, "1@"},
		"a question after it":   {example{state: agency.Running, word: agency.ReportedNeedsInput}, now.Add(-time.Second), agency.NeedsInput, "needs_input@"},
		"its offer after it":    {example{state: agency.Running, word: agency.ReportedReadyForReview}, now.Add(-time.Second), agency.NeedsAttention, ""},
		"its end after it":      {example{state: agency.Completed}, begun, agency.NeedsAttention, ""},
		"its failure":           {example{state: agency.Failed}, now, agency.LabelFailed, ""},
	} {
		f := tt.x.facts()
		f.Run.Flag = &agency.Flag{Reason: "look", By: agency.User, At: tt.flagged}
		got := status.Derive(f, now)
		if id := got.PromptID(); got.Label != tt.label || !strings.HasPrefix(id, tt.prompt) || tt.prompt == "" && id != "" {
			t.Errorf("%s: %+v, prompt %q; want %s, %q", name, got, id, tt.label, tt.prompt)
		}
		findings := status.Explain(f, now).Findings
		if c := findings[0]; c.Says != "flagged: look" || c.Decided != (tt.label == agency.NeedsAttention) || c.Decided == (c.Ignored != "") {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// A permission shows although the agent offers its work.
func TestPermissionAfterOffer(t *testing.T) {
	t.Parallel()
	x := example{state: agency.Running, word: agency.ReportedReadyForReview, kind: kind{evidence: []agency.Evidence{before(0, permission("1"))}}}
	got := x.derive()
	if got.Label != agency.NeedsInput || got.Request == nil || got.Request.Tool != "Bash" || got.Summary != "may it use Bash? make" || got.Decided != agency.DecidedBy(agency.FromHook) {
		t.Errorf("got %+v", got)
	}
}

// A question stays open until it is answered or the agent reports something else; a question at the
// time of the answer is new.
func TestDeriveAnswered(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	asked := start.Add(time.Minute)
	for _, tt := range []struct {
		name  string
		state agency.State
		input time.Duration // when it was answered, after the question; 0 is never
		word  agency.ReportedStatus
		want  agency.Label
	}{
		{"not answered", agency.Running, 0, agency.ReportedNeedsInput, agency.NeedsInput},
		{"answered", agency.Running, time.Second, agency.ReportedNeedsInput, agency.Working},
		{"asked again", agency.Running, -time.Second, agency.ReportedNeedsInput, agency.NeedsInput},
		{"blocked and helped", agency.Running, time.Second, agency.ReportedBlocked, agency.Working},
		{"answered and gone", agency.Completed, time.Second, agency.ReportedNeedsInput, agency.LabelCompleted},
		{"gone without an answer", agency.Completed, 0, agency.ReportedNeedsInput, agency.NeedsInput},
		{"a message does not undo an offer", agency.Running, time.Second, agency.ReportedReadyForReview, agency.ReadyForReview},
	} {
		c := agency.NewContract(start)
		c.Status, c.Questions, c.Blockers, c.HowToTest = tt.word, []string{"Which?"}, []string{"a wall"}, "look"
		r := agency.Run{Attempt: agency.Attempt{State: tt.state, StartedAt: &start, Reported: agency.Observed{Contract: &c, At: asked}}}
		if tt.input != 0 {
			at := asked.Add(tt.input)
			r.Attempt.InputAt = &at
		}
		got := status.Derive(status.Facts{Run: &r, StallThreshold: agency.StallThreshold}, asked.Add(time.Minute))
		if got.Label != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got.Label, tt.want)
		}
	}
}
