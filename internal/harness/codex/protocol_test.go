package codex_test

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

// wire returns what codex app-server wrote in a recorded conversation. In questions, a command is
// approved, a question answered, and a message goes into a turn at work. In approvals, a command is
// refused, the next one interrupted, and a file outside of the working directory is approved.
func wire(t testing.TB, name string) [][]byte {
	t.Helper()
	data, err := os.ReadFile("testdata/protocol." + name + ".wire.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Split(bytes.TrimSpace(data), []byte("\n"))
}

// telling are the signals that change what people see.
var telling = []agency.Signal{
	agency.SignalPrompt, agency.SignalAsked, agency.SignalAnswered, agency.SignalTurnEnded, agency.SignalInterrupted, agency.SignalFailed, agency.SignalUnknown,
}

// The conversations give exactly these signals. A turn begins with a message and ends with rest.
func TestProtocolEvidence(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct{ signals, asked string }{
		"questions": {"prompt asked answered turn_ended prompt asked answered turn_ended prompt prompt turn_ended", "Bash touch made.txt; Which colour? Red|Blue"},
		"approvals": {"prompt asked answered turn_ended prompt asked interrupted answered prompt asked answered turn_ended prompt", "Bash touch made.txt; Bash touch b.txt; apply_patch /etc/x.txt"},
	} {
		talk := protocol.New(harness.Dialect("codex", ""), protocol.Start{Dir: "/work"})
		var signals, asked []string
		for _, line := range wire(t, name) {
			for _, e := range talk.Hear(line).Evidence {
				if slices.Contains(telling, e.Signal) {
					signals = append(signals, string(e.Signal))
				}
				if e.Signal == agency.SignalAsked {
					asked = append(asked, strings.TrimSpace(e.Tool+" "+e.Text+" "+strings.ReplaceAll(e.Options, "\n", "|")))
				}
			}
		}
		if got := strings.Join(signals, " "); got != want.signals {
			t.Errorf("%s: got  %s\nwant %s", name, got, want.signals)
		}
		if got := strings.Join(asked, "; "); got != want.asked {
			t.Errorf("%s: asked %s", name, got)
		}
	}
}

// An answer has the form that Codex takes, with the number by which it asked.
func TestProtocolAnswer(t *testing.T) {
	t.Parallel()
	dialect := harness.Dialect("codex", "")
	ask := func(line string) *protocol.Request {
		events := dialect.Read([]byte(line))
		if len(events) != 1 || events[0].Request == nil {
			t.Fatalf("%s: %+v", line, events)
		}
		return events[0].Request
	}
	command := ask(`{"method":"item/commandExecution/requestApproval","id":3,"params":{"itemId":"call_7","command":"ls"}}`)
	if command.ID != "call_7.3" || command.Number != "3" {
		t.Errorf("got %+v", command)
	}
	questions := ask(`{"method":"item/tool/requestUserInput","id":4,"params":{"itemId":"c","questions":[{"id":"a","question":"Which?","options":[{"label":"Red"}]},{"id":"b","question":"How large?"}]}}`)
	more := ask(`{"method":"item/permissions/requestApproval","id":5,"params":{"itemId":"c","permissions":{"network":{"enabled":true}}}}`)
	server := ask(`{"method":"mcpServer/elicitation/request","id":6,"params":{"turnId":"t","serverName":"files","message":"May I?"}}`)
	for _, tt := range []struct {
		of    *protocol.Request
		reply agency.Reply
		want  string
	}{
		{command, agency.Reply{Decision: agency.Allow}, `{"id":3,"result":{"decision":"accept"}}`},
		{command, agency.Reply{Decision: agency.Deny}, `{"id":3,"result":{"decision":"decline"}}`},
		{questions, agency.Reply{Text: "red; very"}, `{"id":4,"result":{"answers":{"a":{"answers":["Red"]},"b":{"answers":["very"]}}}}`},
		{questions, agency.Reply{Decision: agency.Deny}, `{"id":4,"result":{"answers":{"a":{"answers":[]},"b":{"answers":[]}}}}`},
		{more, agency.Reply{Decision: agency.Allow}, `{"id":5,"result":{"permissions":{"network":{"enabled":true}},"scope":"turn"}}`},
		{more, agency.Reply{Decision: agency.Deny}, `{"id":5,"result":{"permissions":{},"scope":"turn"}}`},
		{server, agency.Reply{Decision: agency.Deny}, `{"id":6,"result":{"action":"decline"}}`},
	} {
		if frame, err := dialect.Answer(tt.of, tt.reply); err != nil || string(frame) != tt.want+"\n" {
			t.Errorf("got %s, %v, want %s", frame, err, tt.want)
		}
	}
	if _, err := dialect.Answer(questions, agency.Reply{Text: "red"}); agency.AsError(err).Code != agency.CodeUsage {
		t.Errorf("one answer to two questions: %v", err)
	}
}

// A turn that failed says why, in the words and with the class of Codex.
func TestProtocolFailure(t *testing.T) {
	t.Parallel()
	dialect := harness.Dialect("codex", "")
	for info, want := range map[string]agency.ErrorClass{
		`"contextWindowExceeded"`: agency.ErrorContext, `"usageLimitExceeded"`: agency.ErrorRateLimit, `"unauthorized"`: agency.ErrorAuth,
		`{"responseTooManyFailedAttempts":{"httpStatusCode":429}}`: agency.ErrorRateLimit, `"tomorrow"`: agency.ErrorOther,
	} {
		events := dialect.Read([]byte(`{"method":"turn/completed","params":{"turn":{"status":"failed","error":{"message":"It failed.","codexErrorInfo":` + info + `}}}}`))
		if len(events) != 2 || !events[0].Failed || events[0].Text != "It failed." || events[0].Class != want || events[1].Kind != protocol.Resting {
			t.Errorf("%s: got %+v, want %s", info, events, want)
		}
	}
}

// What the program does not know is counted, and nothing makes it fail.
func FuzzProtocol(f *testing.F) {
	for _, line := range slices.Concat(wire(f, "questions"), wire(f, "approvals")) {
		f.Add(line)
	}
	f.Add([]byte(`{"method":"attestation/generate","id":0,"params":{}}`))
	f.Add([]byte(`{"method":"tomorrow"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		talk := protocol.New(harness.Dialect("codex", ""), protocol.Start{Dir: "/work"})
		for range 2 {
			h := talk.Hear(line)
			if strings.ContainsFunc(h.Text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }) {
				t.Errorf("unsafe text %q", h.Text)
			}
			if slices.ContainsFunc(h.Evidence, func(e agency.Evidence) bool { return e.Source != agency.FromProtocol }) {
				t.Errorf("got %+v", h.Evidence)
			}
		}
		for _, e := range harness.Dialect("codex", "").Read(line) {
			if e.Request != nil && !json.Valid(e.Request.Input) {
				t.Errorf("got %s", e.Request.Input)
			}
		}
	})
}
