package opencode_test

import (
	"os"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"agency"
	"agency/internal/harness"
	"agency/internal/status"
)

// An empty input box below a conversation means that the agent waits; above the line of its work,
// or before any conversation, it does not.
func TestOpenCodeAtRest(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]agency.Signal{
		"resting": agency.SignalTurnEnded, "working": agency.SignalSession, "prompt": "", "typed": "", "permission": agency.SignalAsked,
	} {
		data, err := os.ReadFile("testdata/" + name + ".screen.txt")
		if err != nil {
			t.Fatal(err)
		}
		evidence := harness.Screen("opencode", strings.Split(ansi.Strip(string(data)), "\n"))
		if got := append(evidence, agency.Evidence{})[0].Signal; got != want {
			t.Errorf("%s: got %+v, want %s", name, evidence, want)
		}
	}
}

// Answers of the model that end early are one trouble, which began with the first of them.
func TestOpenCodeAnswersEndEarly(t *testing.T) {
	t.Parallel()
	var s agency.AgentState
	for _, payload := range []string{
		`[{"type":"chat.message","properties":{"sessionID":"s"}},{"type":"session.cut","properties":{"sessionID":"s","count":1}}]`,
		`[{"type":"session.cut","properties":{"sessionID":"s","count":8}}]`,
	} {
		for _, e := range harness.Hook("opencode", []byte(payload)) {
			e.At = s.HeardAt.Add(1)
			status.Observe(&s, e)
		}
	}
	if s.Turn != agency.TurnWorking || s.Retry == nil || s.Retry.Class != agency.ErrorNetwork || !strings.Contains(s.Retry.Text, "ended early 8 times") {
		t.Fatalf("got %+v, retrying %+v", s.Turn, s.Retry)
	}
	if !s.Retry.At.Before(s.HeardAt) {
		t.Error("it does not count from the first")
	}
}
