package acp_test

import (
	"bytes"
	"fmt"
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
	t := protocol.New(&acp.Dialect, protocol.Start{Dir: "/home/user/repo"})
	t.Intend(protocol.Intent{Saying: protocol.Hello()})
	return t
}

// Agents list their settings in one of two forms.
func TestSettings(t *testing.T) {
	t.Parallel()
	for says, want := range map[string]string{
		`{"id":"agency-hello","result":{"sessionId":"s","modes":{"currentModeId":"default","availableModes":[{"id":"default"},{"id":"yolo"}]},"models":{"currentModelId":"flash","availableModels":[{"modelId":"pro"}]}}}`:                     "flash [pro] default [default yolo]",
		`{"id":"agency-hello","result":{"sessionId":"s","configOptions":[{"id":"model","currentValue":"a/b","options":[{"value":"a/b"}]},{"id":"mode","currentValue":"build","options":[{"value":"build"},{"value":"plan"}]},{"id":"fast"}]}}`: "a/b [a/b] build [build plan]",
		`{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"current_mode_update","currentModeId":"plan"}}}`:                                                                                                       " [] plan []",
	} {
		s := acp.Dialect.Read([]byte(says))[0].Settings
		if got := fmt.Sprintf("%s %v %s %v", s.Model, s.Models, s.PermissionMode, s.PermissionModes); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	refused := acp.Dialect.Read([]byte(`{"id":"set:1","error":{"code":-32602,"message":"mode not found"}}`))[0]
	if refused.Kind != protocol.Replied || refused.ID != "1" || !refused.Failed || refused.Text != "mode not found" {
		t.Errorf("got %+v", refused)
	}
}

// say writes a message.
func say(talk *protocol.Talk, id string) {
	talk.Intend(protocol.Intent{Saying: agency.Saying{Kind: agency.SaysMessage, ID: id, By: "user"}})
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
			for _, id := range []string{"u1", "u2"} {
				if bytes.Contains(line, []byte(`"read:`+id)) {
					say(talk, id)
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

// The agent repeats an old conversation before it begins: that shows no work. In a turn, agency sends no
// second message, which would end the turn.
func TestOneMessageAtATime(t *testing.T) {
	t.Parallel()
	talk := protocol.New(&acp.Dialect, protocol.Start{Dir: "/home/user/repo", Resumes: "s"})
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

// hear returns the signals of lines.
func hear(talk *protocol.Talk, lines ...string) string {
	var signals []string
	for _, line := range lines {
		for _, e := range talk.Hear([]byte(line)).Evidence {
			signals = append(signals, string(e.Signal))
		}
	}
	return strings.Join(signals, " ")
}

// The lines of an agent in a session "s".
const (
	greets    = `{"id":"agency-hello","result":{"sessionId":"s"}}`
	says      = `{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Done."}}}}`
	hasRead   = `{"id":"read:m","error":{"code":-32601}}`
	isDone    = `{"id":"m","result":{"stopReason":"end_turn"}}`
	fails     = `{"id":"m","error":{"code":-32603,"message":"no model"}}`
	neverSaid = `{"id":"x","result":{"stopReason":"end_turn"}}`
)

// An agent that reads nothing during its turn refuses what stands behind the message after the end of
// the turn, and rests all the same.
func TestReadAfterTheTurn(t *testing.T) {
	t.Parallel()
	for end, want := range map[string]string{isDone: "prompt turn_ended", fails: "prompt failed"} {
		talk := talk()
		hear(talk, greets)
		say(talk, "m")
		if got := hear(talk, end, hasRead, says); got != want {
			t.Errorf("%s: got %s", end, got)
		}
		if _, err := talk.Frame(agency.Saying{Kind: agency.SaysMessage, ID: "n"}); err != nil {
			t.Errorf("%s: the next message: %v", end, err)
		}
	}
}

// A reply to what agency never said, or to a message of an earlier turn, ends no turn and begins none.
func TestReplyToNothing(t *testing.T) {
	t.Parallel()
	talk := talk()
	hear(talk, greets)
	if got := hear(talk, `{"id":"read:x","error":{}}`, neverSaid); got != "" {
		t.Errorf("at rest: got %s", got)
	}
	say(talk, "m")
	if _, err := talk.Frame(agency.Saying{Kind: agency.SaysMessage, ID: "n"}); agency.AsError(err).Code != agency.CodeInvalidState {
		t.Errorf("a message before the last one is read: %v", err)
	}
	if got := hear(talk, hasRead, neverSaid, `{"id":null,"error":{"code":-32700}}`, hasRead); got != "prompt busy busy" {
		t.Errorf("in a turn: got %s", got)
	}
}

// An interruption does not reply to a request a second time.
func TestInterruptAfterAnAnswer(t *testing.T) {
	t.Parallel()
	talk := talk()
	hear(talk, greets, `{"id":1,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"a"},"options":[{"optionId":"yes","kind":"allow_once"}]}}`)
	answer := agency.Saying{Kind: agency.SaysAnswer, ID: "a.1", Decision: agency.Allow}
	talk.Intend(protocol.Intent{Saying: answer})
	frame, err := talk.Frame(agency.Saying{Kind: agency.SaysInterrupt, ID: "i"})
	if err != nil || bytes.Contains(frame, []byte(`"cancelled"`)) || !bytes.Contains(frame, []byte("session/cancel")) {
		t.Errorf("got %s, %v", frame, err)
	}
}

// What another session says is not the agent's own word.
func TestAnotherSession(t *testing.T) {
	t.Parallel()
	talk := talk()
	hear(talk, greets)
	say(talk, "m")
	hear(talk, hasRead, says)
	other := strings.ReplaceAll(strings.ReplaceAll(says, `"s"`, `"other"`), "Done.", "Not I.")
	text := talk.Hear([]byte(other)).Text + talk.Hear([]byte(isDone)).Text
	if text != "● Done.\n● (subagent) Not I.\n— turn ended\n" {
		t.Errorf("got\n%s", text)
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
