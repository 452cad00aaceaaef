package acp_test

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"agency"
	"agency/internal/harness/acp"
	"agency/internal/protocol"
)

// wire returns what an agent wrote in a recorded conversation: a command that is allowed, and in the
// next turn one that is refused.
func wire(t testing.TB, name string) [][]byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name + ".wire.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Split(bytes.TrimSpace(data), []byte("\n"))
}

// telling are the signals that change what people see.
var telling = []agency.Signal{
	agency.SignalPrompt, agency.SignalAsked, agency.SignalAnswered, agency.SignalTurnEnded, agency.SignalInterrupted, agency.SignalFailed, agency.SignalUnknown,
}

// talk returns a conversation that has begun as the recorded ones did.
func talk() *protocol.Talk {
	t := protocol.New(&acp.Dialect, "/home/user/repo", "")
	t.Intend(protocol.Intent{Saying: protocol.Hello()})
	return t
}

// The conversations of all agents give the same signals. Gemini ends a turn whose command was
// refused only when it is told to.
func TestEvidence(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]string{"gemini": "interrupted", "copilot": "turn_ended", "opencode": "turn_ended"} {
		talk := talk()
		var signals, asked []string
		var text strings.Builder
		for i, line := range wire(t, name) {
			// The answers were written under other names.
			for n, id := range []string{"answered:x", "answered:y"} {
				if len(asked) == n+1 {
					line = bytes.Replace(line, []byte(id), []byte("answered:"+asked[n]), 1)
				}
			}
			h := talk.Hear(line)
			text.WriteString(h.Text)
			for _, e := range h.Evidence {
				if e.Signal == agency.SignalUnknown {
					t.Errorf("%s, line %d is unknown: %s", name, i+1, line)
				}
				if slices.Contains(telling, e.Signal) {
					signals = append(signals, string(e.Signal))
				}
				if e.Signal == agency.SignalAsked {
					asked = append(asked, e.ID)
				}
			}
		}
		if got := strings.Join(signals, " "); got != "prompt asked answered turn_ended prompt asked answered "+last {
			t.Errorf("%s: got %s", name, got)
		}
		for _, want := range []string{"● I try.\n", "may it use shell? touch made.txt\n", "● Made it.\n", "may it use shell? touch b.txt\n"} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("%s: %q is not in\n%s", name, want, &text)
			}
		}
	}
}

// An answer is the option that allows or refuses once, and behind it stands what shows that the agent
// has read it. An interruption cancels what is open.
func TestAnswer(t *testing.T) {
	t.Parallel()
	events := acp.Dialect.Read([]byte(`{"jsonrpc":"2.0","id":3,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"c","kind":"edit","title":"a.go"},` +
		`"options":[{"optionId":"always","kind":"allow_always"},{"optionId":"yes","kind":"allow_once"},{"optionId":"no","kind":"reject_once"}]}}`))
	if len(events) != 1 || events[0].Request == nil || events[0].Request.ID != "c.3" || events[0].Request.Tool != "edit" || events[0].Request.Text != "a.go" {
		t.Fatalf("got %+v", events)
	}
	request := events[0].Request
	for decision, want := range map[agency.Decision]string{agency.Allow: `"optionId":"yes"`, agency.Deny: `"optionId":"no"`} {
		frame, err := acp.Dialect.Answer(request, agency.Reply{Decision: decision})
		if err != nil || !strings.Contains(string(frame), want) || !strings.Contains(string(frame), `"id":"answered:c.3"`) {
			t.Errorf("%s: got %s, %v", decision, frame, err)
		}
	}
	frame := string(acp.Dialect.Interrupt(protocol.Place{Conversation: "s", Open: []*protocol.Request{request}}, "i"))
	for _, want := range []string{`"id":3,"jsonrpc":"2.0","result":{"outcome":{"outcome":"cancelled"}}`, `"withdrawn:c.3"`, `"method":"session/cancel"`, `"look:i"`} {
		if !strings.Contains(frame, want) {
			t.Errorf("%s is not in %s", want, frame)
		}
	}
}

// An old conversation that is told again is no work, and a message in a turn would end it.
func TestOneMessageAtATime(t *testing.T) {
	t.Parallel()
	talk := protocol.New(&acp.Dialect, "/home/user/repo", "s")
	talk.Intend(protocol.Intent{Saying: protocol.Hello()})
	old := talk.Hear([]byte(`{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Old."}}}}`))
	if len(old.Evidence) != 0 || old.Text != "" {
		t.Errorf("got %+v", old)
	}
	talk.Hear([]byte(`{"id":"agency-hello","result":{}}`))
	message := agency.Saying{Kind: agency.SaysMessage, ID: "m", Text: "go on", By: "user"}
	frame, err := talk.Frame(message)
	if err != nil || !strings.Contains(string(frame), `"sessionId":"s"`) {
		t.Fatalf("got %s, %v", frame, err)
	}
	talk.Intend(protocol.Intent{Saying: message})
	talk.Hear([]byte(`{"id":"read:m","error":{"code":-32601}}`))
	if _, err := talk.Frame(agency.Saying{Kind: agency.SaysMessage, ID: "n", By: "user"}); agency.AsError(err).Code != agency.CodeInvalidState {
		t.Errorf("a second message in a turn: %v", err)
	}
}

// What the program does not know is counted, and nothing makes it fail.
func FuzzRead(f *testing.F) {
	for _, line := range slices.Concat(wire(f, "gemini"), wire(f, "copilot"), wire(f, "opencode")) {
		f.Add(line)
	}
	f.Add([]byte(`{"id":"read:","method":"","result":{"stopReason":"tomorrow"}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		talk := talk()
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
