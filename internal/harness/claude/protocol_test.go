package claude_test

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"agency"
	"agency/internal/harness"
	"agency/internal/protocol"
)

// wire returns what Claude Code wrote in a recorded conversation: a permission given, one refused, a
// question, two permissions, an interruption with a message in the queue, messages with an id that
// it had before, another interruption, a call of the model that is tried again, and /compact.
func wire(t testing.TB) [][]byte {
	t.Helper()
	data, err := os.ReadFile("testdata/protocol.wire.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Split(bytes.TrimSpace(data), []byte("\n"))
}

// telling are the signals that change what people see.
var telling = []agency.Signal{
	agency.SignalPrompt, agency.SignalAsked, agency.SignalAnswered, agency.SignalTurnEnded, agency.SignalInterrupted, agency.SignalFailed, agency.SignalRetrying,
}

// The conversation gives exactly these signals. A turn begins with a message and ends with rest.
func TestProtocolEvidence(t *testing.T) {
	t.Parallel()
	talk := protocol.New(harness.Dialect("claude_code", ""), protocol.Start{Dir: "/work"})
	var signals []string
	var unknown, asked []agency.Evidence
	for _, line := range wire(t) {
		for _, e := range talk.Hear(line).Evidence {
			if e.Signal == agency.SignalUnknown {
				unknown = append(unknown, e)
			}
			if e.Signal == agency.SignalAsked {
				asked = append(asked, e)
			}
			if slices.Contains(telling, e.Signal) {
				signals = append(signals, string(e.Signal))
			}
		}
	}
	want := "prompt asked answered turn_ended prompt asked answered turn_ended prompt asked answered turn_ended " +
		"prompt asked answered asked answered turn_ended prompt asked answered interrupted prompt turn_ended " +
		"prompt interrupted prompt retrying retrying turn_ended prompt turn_ended"
	if got := strings.Join(signals, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if len(unknown) > 0 {
		t.Errorf("unknown: %+v", unknown)
	}
	question := asked[2]
	if question.Kind != agency.AsksQuestion || question.Text != "Which colour?" || question.Options != "Red\nBlue" || asked[0].Tool != "Bash" || asked[0].Text != "touch made.txt" {
		t.Errorf("asked %+v", asked)
	}
}

// An answer has the form that Claude Code takes, and only an open request takes one.
func TestProtocolAnswer(t *testing.T) {
	t.Parallel()
	dialect := harness.Dialect("claude_code", "")
	input := json.RawMessage(`{"questions":[{"question":"Which colour?","options":[{"label":"Red"},{"label":"Blue"}]},{"question":"How large?"}]}`)
	question := &protocol.Request{ID: "q", Kind: agency.AsksQuestion, Input: input}
	frame, err := dialect.Answer(question, agency.Reply{Text: "blue; very"})
	if err != nil || !strings.Contains(string(frame), `"answers":{"How large?":"very","Which colour?":"Blue"}`) {
		t.Errorf("got %s, %v", frame, err)
	}
	if _, err := dialect.Answer(question, agency.Reply{Text: "blue"}); agency.AsError(err).Code != agency.CodeUsage {
		t.Errorf("one answer to two questions: %v", err)
	}
	permission := &protocol.Request{ID: "p", Kind: agency.AsksPermission, Tool: "Bash", Input: json.RawMessage(`{"command":"ls"}`)}
	for decision, want := range map[agency.Decision]string{agency.Allow: `"updatedInput":{"command":"ls"}`, agency.Deny: `"behavior":"deny"`} {
		frame, err := dialect.Answer(permission, agency.Reply{Decision: decision})
		if err != nil || !strings.Contains(string(frame), want) || bytes.Count(frame, []byte("\n")) != 1 {
			t.Errorf("%s: got %s, %v", decision, frame, err)
		}
	}
}

// What the program does not know is counted, and nothing makes it fail.
func FuzzProtocol(f *testing.F) {
	for _, line := range wire(f) {
		f.Add(line)
	}
	f.Add([]byte(`{"type":"control_request","request_id":"x","request":{"subtype":"hook_callback"}}`))
	f.Add([]byte(`{"type":"tomorrow"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		talk := protocol.New(harness.Dialect("claude_code", ""), protocol.Start{Dir: "/work"})
		for range 2 {
			h := talk.Hear(line)
			if strings.ContainsFunc(h.Text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }) {
				t.Errorf("unsafe text %q", h.Text)
			}
			if slices.ContainsFunc(h.Evidence, func(e agency.Evidence) bool { return e.Source != agency.FromProtocol }) {
				t.Errorf("got %+v", h.Evidence)
			}
		}
	})
}
