package codex_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"agency"
	"agency/internal/harness"
	"agency/internal/protocol"
)

const (
	wireID  = "guest-1a2b3c4d-1"
	typedID = "65c693a4-1a89-45a6-ba24-c7fe9f151a21"
)

// guestTalk returns a conversation c1 in which Codex asks the request 0.
func guestTalk(t testing.TB) *protocol.Talk {
	t.Helper()
	talk := protocol.New(harness.Dialect("codex", ""), protocol.Start{})
	for _, line := range []string{
		`{"id":"agency-hello-initialize","result":{"userAgent":"agency/0.169.0","codexHome":"/h","platformFamily":"unix","platformOs":"linux"}}`,
		`{"id":"agency-hello","result":{"thread":{"id":"c1"},"model":"gpt"}}`,
		`{"method":"turn/started","params":{"threadId":"c1","turn":{"id":"t1"}}}`,
		`{"method":"item/commandExecution/requestApproval","id":0,"params":{"threadId":"c1","turnId":"t1","itemId":"call_1","command":"rm x"}}`,
	} {
		talk.Hear([]byte(line))
	}
	if err := talk.Joins(); err != nil {
		t.Fatal(err)
	}
	return talk
}

// What Codex's terminal says is passed on, answered by agency, or refused.
func TestGuestFrames(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ frame, saying, passed, reply string }{
		"initialize":  {`{"id":"i","method":"initialize","params":{}}`, "", "", `{"id":"i","result":{"userAgent":"agency/0.169.0","codexHome":"/h","platformFamily":"unix","platformOs":"linux"}}`},
		"initialized": {`{"method":"initialized"}`, "", "", ""},
		"read":        {`{"id":1,"method":"thread/read","params":{"threadId":"c1"}}`, "guest " + wireID + " thread/read", `{"id":"` + wireID + `","method":"thread/read","params":{"threadId":"c1"}}`, ""},
		"join":        {`{"id":1,"method":"thread/resume","params":{"threadId":"c1"}}`, "join " + wireID + " thread/resume", `{"id":"` + wireID + `","method":"thread/resume","params":{"threadId":"c1"}}`, ""},
		"another one": {`{"id":1,"method":"thread/resume","params":{"threadId":"c2"}}`, "", "", "agency leads this conversation"},
		"a new one":   {`{"id":1,"method":"thread/start","params":{}}`, "", "", "agency leads this conversation"},
		"delete":      {`{"id":1,"method":"thread/delete","params":{"threadId":"c1"}}`, "", "", "agency leads this conversation"},
		"for a title": {`{"id":1,"method":"thread/start","params":{"ephemeral":true}}`, "guest " + wireID + " thread/start", `{"id":"` + wireID + `","method":"thread/start","params":{"ephemeral":true}}`, ""},
		"leave":       {`{"id":1,"method":"thread/unsubscribe","params":{"threadId":"c1"}}`, "", "", `{"id":1,"result":{"status":"unsubscribed"}}`},
		"leave title": {`{"id":1,"method":"thread/unsubscribe","params":{"threadId":"c2"}}`, "guest " + wireID + " thread/unsubscribe", `{"id":"` + wireID + `","method":"thread/unsubscribe","params":{"threadId":"c2"}}`, ""},
		"interrupt":   {`{"id":1,"method":"turn/interrupt","params":{"threadId":"c1","turnId":"t1"}}`, "interrupt " + wireID, `{"id":"` + wireID + `","method":"turn/interrupt","params":{"threadId":"c1","turnId":"t1"}}`, ""},
		"message": {
			`{"id":1,"method":"turn/start","params":{"threadId":"c1","clientUserMessageId":"` + typedID + `","input":[{"type":"text","text":"go"},{"type":"localImage"}]}}`, "message " + typedID + " go\n[localImage]",
			`{"id":"` + typedID + `","method":"turn/start","params":{"clientUserMessageId":"` + typedID + `","input":[{"type":"text","text":"go"},{"type":"localImage"}],"threadId":"c1"}}`, "",
		},
		"an id of agency": {
			`{"id":1,"method":"turn/steer","params":{"threadId":"c1","clientUserMessageId":"agency-hello","input":[]}}`, "message " + wireID,
			`{"id":"` + wireID + `","method":"turn/steer","params":{"clientUserMessageId":"` + wireID + `","input":[],"threadId":"c1"}}`, "",
		},
		"accept":         {`{"id":0,"result":{"decision":"accept"}}`, "answer call_1.0 allow", `{"id":0,"result":{"decision":"accept"}}`, ""},
		"accept always":  {`{"id":0,"result":{"decision":{"acceptWithExecpolicyAmendment":{}}}}`, "answer call_1.0 allow acceptWithExecpolicyAmendment", `{"id":0,"result":{"decision":{"acceptWithExecpolicyAmendment":{}}}}`, ""},
		"cancel":         {`{"id":0,"result":{"decision":"cancel"}}`, "answer call_1.0 deny cancel", `{"id":0,"result":{"decision":"cancel"}}`, ""},
		"no answer":      {`{"id":0,"result":"?"}`, "", "", ""},
		"no decision":    {`{"id":0,"result":{}}`, "", "", ""},
		"an error":       {`{"id":0,"error":{"code":1}}`, "", "", ""},
		"of another one": {`{"id":9,"result":{"decision":"accept"}}`, "guest 9 allow", `{"id":9,"result":{"decision":"accept"}}`, ""},
		"odd parameters": {`{"id":1,"method":"turn/start","params":[7]}`, "guest " + wireID + " turn/start", `{"id":"` + wireID + `","method":"turn/start","params":[7]}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := guestTalk(t).Guest(wireID, []byte(test.frame))
			s := f.Saying
			got := strings.TrimSpace(strings.Join(strings.Fields(fmt.Sprint(s.Kind, " ", s.ID, " ", s.Decision, " ", s.Answer)), " ") + " " + s.Text)
			if err != nil || got != test.saying || string(f.Frame) != test.passed || !strings.Contains(string(f.Reply), test.reply) || test.reply == "" && f.Reply != nil {
				t.Errorf("got %q, %s, reply %s, %v", got, f.Frame, f.Reply, err)
			}
			if s.Kind != "" && s.By != agency.UserTerminal {
				t.Errorf("it is said by %q", s.By)
			}
		})
	}
	for _, frame := range []string{"", "x", "[]", "{}", `"a"`, `{"id":null}`} {
		if f, err := guestTalk(t).Guest(wireID, []byte(frame)); err == nil && f.Saying.Kind != "" {
			t.Errorf("%q passes as %+v", frame, f)
		}
	}
}

// A message that was to go into a turn, and came after its end, is said again under its id. It is the one
// that is written again when the wrapper is killed now, and nothing that was refused is.
func TestGuestSaysAgain(t *testing.T) {
	t.Parallel()
	talk := guestTalk(t)
	say := func(id, method, client string) {
		t.Helper()
		frame := fmt.Sprintf(`{"id":1,"method":%q,"params":{"threadId":"c1","clientUserMessageId":%q,"input":[{"type":"text","text":"go"}]}}`, method, client)
		f, err := talk.Guest(id, []byte(frame))
		if err != nil || f.Frame == nil {
			t.Fatalf("%s does not pass: %s, %v", method, f.Reply, err)
		}
		talk.Intend(protocol.Intent{Saying: f.Saying, Frame: string(f.Frame)})
	}
	refuse := func(id string) {
		talk.Hear([]byte(`{"id":"` + id + `","error":{"code":-32600,"message":"no active turn to steer"}}`))
	}
	say(wireID, "turn/steer", "")
	refuse(wireID)
	say("guest-1a2b3c4d-2", "turn/steer", typedID)
	refuse(typedID)
	if again := talk.Unproven(); len(again) > 0 {
		t.Errorf("what was refused is written again: %+v", again)
	}
	say("guest-1a2b3c4d-3", "turn/start", typedID)
	if again := talk.Unproven(); len(again) != 1 || !strings.Contains(again[0].Frame, "turn/start") {
		t.Errorf("%+v would be written again", again)
	}
	h := talk.Hear([]byte(`{"method":"item/started","params":{"threadId":"c1","turnId":"t2","item":{"type":"userMessage","id":"u","clientId":"` + typedID + `"}}}`))
	if len(h.Evidence) != 2 || h.Evidence[1].Said == nil || h.Evidence[1].Said.Bytes != 2 {
		t.Errorf("got %+v", h.Evidence)
	}
}

// Codex gets the first answer to a request only. A conversation that a terminal begins to find a title
// does not change that of the run.
func TestGuestBesideTheConversation(t *testing.T) {
	t.Parallel()
	talk := guestTalk(t)
	talk.Intend(protocol.Intent{Saying: agency.Saying{Kind: agency.SaysAnswer, ID: "call_1.0", Decision: agency.Deny, By: agency.User}})
	if f, err := talk.Guest(wireID, []byte(`{"id":0,"result":{"decision":"accept"}}`)); err != nil || f.Saying.Kind != "" || f.Frame != nil {
		t.Errorf("a second answer passes: %+v, %v", f, err)
	}
	talk.Hear([]byte(`{"id":"` + wireID + `","result":{"thread":{"id":"c2","ephemeral":true},"model":"gpt"}}`))
	for _, line := range []string{
		`{"method":"turn/started","params":{"threadId":"c2","turn":{"id":"t2"}}}`,
		`{"method":"item/completed","params":{"threadId":"c2","item":{"type":"agentMessage","id":"m","text":"A title"}}}`,
		`{"method":"turn/completed","params":{"threadId":"c2","turn":{"id":"t2"}}}`,
	} {
		if h := talk.Hear([]byte(line)); h.Text != "" || len(h.Evidence) > 0 {
			t.Errorf("%s comes to %+v", line, h)
		}
	}
	if talk.Place.Conversation != "c1" || talk.Place.Turn != "t1" {
		t.Errorf("the place is %+v", talk.Place)
	}
}

// Lines of Codex are for all guests, for the one that asked, or for agency.
func TestGuestLines(t *testing.T) {
	t.Parallel()
	guests := harness.Dialect("codex", "").Guests
	for line, want := range map[string]protocol.Audience{
		`{"method":"turn/started","params":{}}`:                           {},
		`{"id":"guest-1-1","result":{}}`:                                  {Replies: "guest-1-1"},
		`{"method":"item/fileChange/requestApproval","id":3,"params":{}}`: {Asks: "3"},
		`{"method":"item/tool/call","id":4,"params":{}}`:                  {Asks: "4", Private: true},
		`{"method":"serverRequest/resolved","params":{"requestId":3}}`:    {Over: "3"},
		`{"id":7,"result":{}}`:                                            {Private: true},
		`no JSON`:                                                         {Private: true},
	} {
		if got := guests.Audience([]byte(line)); got != want {
			t.Errorf("%s: got %+v, want %+v", line, got, want)
		}
	}
	if got := guests.Reply([]byte(`{"id":"guest-1-1","result":{"a":1}}`), json.RawMessage("12")); string(got) != `{"id":12,"result":{"a":1}}` {
		t.Errorf("got %s", got)
	}
}

// Whatever a terminal says, Codex and the terminal get one line of JSON at most, and Codex no request
// under an id of agency's own.
func FuzzGuest(f *testing.F) {
	for _, seed := range []string{
		`{"id":1,"method":"turn/start","params":{"threadId":"c1","clientUserMessageId":"` + typedID + `","input":[{"type":"text","text":"go"}]}}`,
		`{"id":0,"result":{"decision":"accept"}}`, `{"id":1,"method":"thread/resume","params":{"threadId":"c1"}}`, "{\n\"id\": 2,\n\"method\": \"model/list\"}",
		`{"method":"initialized"}`, `[]`, `{"id":{"a":[1]},"method":"initialize"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		said, err := guestTalk(t).Guest(wireID, frame)
		if err != nil {
			return
		}
		for _, line := range [][]byte{said.Frame, said.Reply} {
			if len(line) > 0 && (!json.Valid(line) || bytes.ContainsAny(line, "\n\r")) {
				t.Errorf("%q becomes %q", frame, line)
			}
		}
		if strings.HasPrefix(said.Saying.ID, "agency-") || said.Saying.Kind != "" && said.Saying.By != agency.UserTerminal {
			t.Errorf("%q is taken as %+v", frame, said.Saying)
		}
	})
}
