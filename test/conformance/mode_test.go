package conformance_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"agency"
	"agency/internal/api"
	"agency/internal/harness"
	"agency/test/conformance/modelserver"
)

// A conversation goes from one mode to the other and back, three times: the agent remembers what was
// said in the beginning, gets nothing but the user's messages, and its tokens are counted once.
func TestModes(t *testing.T) {
	t.Parallel()
	// OpenCode and Gemini CLI are left out: docs/protocol.md says what they lose.
	for _, runner := range slices.DeleteFunc(runners(), func(r string) bool { return r == "opencode" || r == "gemini" }) {
		t.Run(runner, func(t *testing.T) {
			t.Parallel()
			testStates(t, runner, map[string]state{"round trips": moves})
		})
	}
}

func moves(t *testing.T, binary string, a agent) {
	const trips = 3
	scenario := modelserver.Scenario{{Text: "The word is heliotrope."}}
	for i := range 2 * trips {
		scenario = append(scenario, modelserver.Turn{Text: fmt.Sprint("Heard ", i, ".")})
	}
	f, run, tl := speak(t, binary, a, scenario...)
	tl.await(agency.Waiting)
	first := f.show(run)
	for i := range 2 * trips {
		mode := []agency.Mode{agency.ModeTerminal, agency.ModeProtocol}[i%2]
		var moved api.ResumeRunResponse
		f.agency(&moved, "mode", string(run.ID), string(mode))
		if moved.Run.Mode != mode || moved.Run.Attempt != i+2 {
			t.Fatalf("attempt %d in the mode %s", moved.Run.Attempt, moved.Run.Mode)
		}
		f.output(binary, "wait", string(run.ID), "--for", "waiting", "--timeout", "60s")
		f.output(binary, "send", string(run.ID), fmt.Sprint("message ", i))
		f.asked(i + 1)
		if now := f.show(run); now.Conversation != first.Conversation {
			t.Fatalf("%s: the conversation is %q and was %q", mode, now.Conversation, first.Conversation)
		}
		f.until("the end of the turn", func() bool { return f.show(run).Status == agency.Waiting })
	}
	requests := f.model.Requests()
	for i := range requests {
		if r := &requests[i]; !r.Side && r.Turn == 2*trips && !strings.Contains(string(r.Body), "heliotrope") {
			t.Errorf("the word is forgotten")
		}
	}
	if harness.Dialect(agency.RunnerKind(a.runner), "").OneAtATime {
		return // its tokens are estimates
	}
	f.until("the tokens of all turns, once", func() bool {
		u := f.show(run).Usage
		return u.InputTokens != nil && *u.InputTokens >= 2*trips+1
	})
	if u := f.show(run).Usage; *u.InputTokens != 2*trips+1 {
		t.Errorf("%d tokens in %d turns", *u.InputTokens, 2*trips+1)
	}
}
