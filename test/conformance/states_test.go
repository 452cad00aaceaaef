package conformance_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"agency"
	"agency/internal/api"
	"agency/test/conformance/modelserver"
)

// state tests one state that an agent can get into.
type state func(t *testing.T, binary string, a agent)

// testStates runs the tests of an agent's states at once, each with a data root of its own.
func testStates(t *testing.T, runner string, states map[string]state) {
	t.Helper()
	binary, a := installed(t, runner)
	for name, test := range states {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, binary, a)
		})
	}
}

// talks tests two turns of text alone. The source decides that the run waits; an empty model
// matches any.
func talks(model string, source agency.Source) state {
	return func(t *testing.T, binary string, a agent) {
		evening := make(chan struct{})
		f := newFixture(t, binary, a, modelserver.Scenario{{Text: "Good morning."}, {Text: "Good evening.", Gate: evening}})
		run, tl := f.begin(a)
		tl.await(agency.Waiting)
		f.output(binary, "send", string(run.ID), "and now?")
		f.asked(1)
		tl.await(agency.Working)
		close(evening)
		got := tl.await(agency.Waiting)
		tl.check(agency.Working, agency.Waiting, agency.Working, agency.Waiting)
		if got.Conversation == "" || got.Model == "" || model != "" && got.Model != model || got.Decided != agency.DecidedBy(source) {
			t.Errorf("got %+v", got)
		}
		f.until("2 tokens in and out, and no cost", func() bool {
			u := f.show(run).Usage
			return u.InputTokens != nil && *u.InputTokens == 2 && u.OutputTokens != nil && *u.OutputTokens == 2 && u.CostUSD == nil
		})
	}
}

// writes tests a tool that needs no permission.
func writes(t *testing.T, binary string, a agent) {
	f := newFixture(t, binary, a, modelserver.Scenario{
		{Text: "I write.", Write: &modelserver.File{Path: "made.txt", Content: "x\n"}}, {Text: "Written."},
	})
	run, tl := f.begin(a)
	f.asked(1) // with the tool's result
	tl.await(agency.Waiting)
	tl.check(agency.Working, agency.Waiting)
	if _, err := os.Stat(filepath.Join(run.Worktree, "made.txt")); err != nil {
		t.Error(err)
	}
}

// leave describes how an agent asks for the permission to run a command: its tool, and a text of
// its dialog.
type leave struct{ tool, dialog string }

// asked starts a run that asks for the permission to run a command, and waits until its dialog
// shows. A gate, if there is one, holds back what the model says after that.
func (l leave) asked(t *testing.T, binary string, a agent, gate <-chan struct{}) (*fixture, api.Run, *timeline) {
	t.Helper()
	f := newFixture(t, binary, a, modelserver.Scenario{
		{Text: "I run it.", Shell: "mkdir -p made"}, {Text: "It ran.", Gate: gate}, {Text: "I went on.", Gate: gate},
	})
	run, tl := f.begin(a)
	asks := tl.awaitSummary(agency.NeedsInput, "mkdir -p made") // the first report may contain only that it asks
	if r := asks.Request; r == nil || r.Kind != agency.AsksPermission || r.Tool != l.tool || r.Text != "mkdir -p made" {
		t.Errorf("request: got %+v", r)
	}
	f.shown(run, l.dialog)
	return f, run, tl
}

// given tests a permission that the user gives in the terminal with a key.
func (l leave) given(key string) state {
	return func(t *testing.T, binary string, a agent) {
		gate := make(chan struct{})
		f, run, tl := l.asked(t, binary, a, gate)
		f.answer(run, tl, l.dialog, key)
		f.asked(1)
		tl.await(agency.Working)
		close(gate)
		tl.await(agency.Waiting)
		tl.check(agency.Working, agency.NeedsInput, agency.Working, agency.Waiting)
		if _, err := os.Stat(filepath.Join(run.Worktree, "made")); err != nil {
			t.Error(err)
		}
	}
}

// asksQuestion tests a question whose first choice the user takes in the terminal. The dialog
// contains the text.
func asksQuestion(dialog string) state {
	return func(t *testing.T, binary string, a agent) {
		const question = "Which colour is it to be?"
		gate := make(chan struct{})
		f := newFixture(t, binary, a, modelserver.Scenario{{Ask: question}, {Text: "Thank you.", Gate: gate}})
		run, tl := f.begin(a)
		asks := tl.await(agency.NeedsInput)
		if asks.Summary != question || asks.Request == nil || asks.Request.Kind != agency.AsksQuestion {
			t.Errorf("got %q, %+v", asks.Summary, asks.Request)
		}
		f.answer(run, tl, dialog, "Enter")
		f.asked(1)
		tl.await(agency.Working)
		close(gate)
		tl.await(agency.Waiting)
		tl.check(agency.Working, agency.NeedsInput, agency.Working, agency.Waiting)
	}
}

// fails tests a call of the model that fails finally, at once or after some more tries.
func fails(status int, message, summary string, env ...string) state {
	return func(t *testing.T, binary string, a agent) {
		f := newFixture(t, binary, a, modelserver.Scenario{{Status: status, Failure: modelserver.Failure{Message: message, RetryAfter: time.Second}}})
		f.env = append(f.env, env...)
		_, tl := f.begin(a)
		tl.awaitSummary(agency.Waiting, summary)
		tl.check(agency.Working, agency.Waiting)
	}
}

// passes tests an error of the model that passes. Its summary shows while the agent tries again.
func passes(status int, failure modelserver.Failure, summary string) state {
	return func(t *testing.T, binary string, a agent) {
		f := newFixture(t, binary, a, modelserver.Scenario{{Text: "At last.", Status: status, Failure: failure}})
		_, tl := f.begin(a)
		tl.awaitSummary(agency.Working, summary)
		tl.await(agency.Waiting)
		tl.check(agency.Working, agency.Waiting)
	}
}

// checkContinued checks that a second attempt continues the conversation of the first.
func (f *fixture) checkContinued(before api.Run) {
	f.t.Helper()
	after := f.show(before)
	if after.Attempt != 2 || after.Conversation != before.Conversation || after.Conversation == "" {
		f.t.Errorf("got attempt %d of %q, want 2 of %q", after.Attempt, after.Conversation, before.Conversation)
	}
}

// show returns the present state of a run.
func (f *fixture) show(run api.Run) api.Run {
	f.t.Helper()
	var shown struct {
		Run api.Run `json:"run"`
	}
	f.agency(&shown, "show", string(run.ID))
	return shown.Run
}
