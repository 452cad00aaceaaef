package protocol_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"agency"
	"agency/internal/protocol"
)

// events is a protocol whose frames are events.
var events = protocol.Dialect{
	Name:  "events",
	Hello: func(_ protocol.Place, id string) []byte { return []byte(id) },
	Read: func(line []byte) []protocol.Event {
		var e protocol.Event
		if json.Unmarshal(line, &e) != nil {
			return []protocol.Event{{Name: "no JSON"}}
		}
		return []protocol.Event{e}
	},
	Message:   func(_ protocol.Place, id, text string, _ []string) []byte { return []byte(id + text) },
	Interrupt: func(_ protocol.Place, id string) []byte { return []byte(id) },
	Refuse:    func(id, name string) []byte { return []byte(id + " " + name) },
	Answer:    func(r *protocol.Request, _ agency.Reply) ([]byte, error) { return []byte(r.ID), nil },
}

// hear has a talk hear an event, and then forget all that it does not keep for the next wrapper.
func hear(t *testing.T, talk *protocol.Talk, e protocol.Event) protocol.Heard {
	t.Helper()
	line, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	heard := talk.Hear(line)
	memory, err := talk.Memory()
	if err == nil {
		err = talk.Remember(memory)
	}
	if err != nil {
		t.Fatal(err)
	}
	return heard
}

func asked(id string) protocol.Event {
	return protocol.Event{Kind: protocol.Asked, ID: id, Request: &protocol.Request{ID: id, Kind: agency.AsksPermission, Tool: "Bash", Text: "ls \x1b[31m"}}
}

// A request that agency does not know is refused once, also by the next wrapper, which says the last
// refusal again. The same id later is a new request.
func TestRefusal(t *testing.T) {
	t.Parallel()
	talk := protocol.New(&events, protocol.Start{Dir: "/work"})
	asks := protocol.Event{Kind: protocol.Foreign, Name: "fs/read\x1b", ID: "5"}
	if h := hear(t, talk, asks); len(h.Evidence) != 1 || h.Evidence[0].Signal != agency.SignalRefused || h.Evidence[0].Event != asks.Name {
		t.Errorf("got %+v", h)
	}
	for range 2 {
		refusals := talk.Refusals()
		if len(refusals) != 1 {
			t.Fatalf("got %+v", refusals)
		}
		frame, err := talk.Frame(refusals[0])
		if err != nil || !strings.HasPrefix(string(frame), "5 fs/read") {
			t.Errorf("got %q, %v", frame, err)
		}
		if text := talk.Intend(protocol.Intent{Saying: refusals[0]}); !strings.Contains(text, "does not know the request fs/read") || strings.Contains(text, "\x1b") {
			t.Errorf("got %q", text)
		}
		if again, unproven := talk.Refusals(), talk.Unproven(); len(again) != 0 || len(unproven) != 1 || unproven[0].ID != refusals[0].ID {
			t.Errorf("got %+v and %+v", again, unproven)
		}
		hear(t, talk, asks)
	}
	hear(t, talk, protocol.Event{Kind: protocol.Foreign, ID: strings.Repeat("5", 1000)})
	if got := talk.Refusals(); len(got) != 1 {
		t.Errorf("an id without end: %+v", got)
	}
}

// What the user types is a message, but while the agent asks, only an answer.
func TestTyped(t *testing.T) {
	t.Parallel()
	talk := protocol.New(&events, protocol.Start{Dir: "/work"})
	typed := func(text string) string {
		s, err := talk.Typed("m", text)
		if err != nil {
			return err.Error()
		}
		return strings.TrimSpace(fmt.Sprint(s.Kind, " ", s.ID, " ", s.Text, s.Decision, s.Answer))
	}
	for _, step := range []struct {
		hears       protocol.Event
		types, want string
	}{
		{protocol.Event{Kind: protocol.Working}, "and now?", "message m and now?"},
		{asked("a"), "Allow", "answer a allow"},
		{asked("a"), "and now?", "its agent asks for permission"},
		{asked("b"), "allow", "its agent asks 2 things at once"},
		{protocol.Event{Kind: protocol.Withdrawn, ID: "a"}, "deny", "answer b deny"},
		{protocol.Event{Kind: protocol.Withdrawn, ID: "b"}, "deny", "message m deny"},
		{protocol.Event{Kind: protocol.Asked, ID: "q", Request: &protocol.Request{ID: "q", Kind: agency.AsksQuestion, Options: []string{"Red"}}}, "red", "answer q red"},
		{asked("q"), "and now?", "its agent asks a question, and this is none of the answers that it names"},
	} {
		hear(t, talk, step.hears)
		if got := typed(step.types); got != step.want {
			t.Errorf("%q is %q, want %q", step.types, got, step.want)
		}
	}
}

// A message in parts is shown whole, also when a part is larger than what is collected.
func TestLargePart(t *testing.T) {
	t.Parallel()
	talk := protocol.New(&events, protocol.Start{Dir: "/work"})
	hear(t, talk, protocol.Event{Kind: protocol.Working})
	var shown strings.Builder
	for _, text := range []string{"begin ", strings.Repeat("a", 2<<20) + " middle ", "end"} {
		shown.WriteString(hear(t, talk, protocol.Event{Kind: protocol.Part, Text: text}).Text)
	}
	shown.WriteString(hear(t, talk, protocol.Event{Kind: protocol.Ended}).Text)
	if got := shown.String(); len(got) < 2<<20 || !strings.Contains(got, "begin") || !strings.Contains(got, " middle") || !strings.Contains(got, "end\n") {
		t.Errorf("%d bytes are shown", len(got))
	}
}

// An agent that reports rest with a request open still waits for the answer. It rests after that.
func TestRestWhileItAsks(t *testing.T) {
	t.Parallel()
	talk := protocol.New(&events, protocol.Start{Dir: "/work"})
	hear(t, talk, protocol.Event{Kind: protocol.Working})
	hear(t, talk, asked("a"))
	if h := hear(t, talk, protocol.Event{Kind: protocol.Resting}); len(h.Evidence) != 0 {
		t.Errorf("rest while it asks: %+v", h)
	}
	h := hear(t, talk, protocol.Event{Kind: protocol.Answered, ID: "a"})
	if len(h.Evidence) != 2 || h.Evidence[0].ID != "a" || h.Evidence[1].Signal != agency.SignalTurnEnded {
		t.Errorf("answered: %+v", h)
	}
}

// A turn that was cut off is over at once: there is nothing to interrupt before the agent rests, too.
func TestInterruptAfterTheEnd(t *testing.T) {
	t.Parallel()
	talk := protocol.New(&events, protocol.Start{Dir: "/work"})
	hear(t, talk, protocol.Event{Kind: protocol.Working})
	if _, err := talk.Frame(agency.Saying{Kind: agency.SaysInterrupt, ID: "i"}); err != nil {
		t.Errorf("in a turn: %v", err)
	}
	hear(t, talk, protocol.Event{Kind: protocol.Ended, Interrupted: true})
	if _, err := talk.Frame(agency.Saying{Kind: agency.SaysInterrupt, ID: "j"}); !agency.IsCode(err, agency.CodeInvalidState) {
		t.Errorf("after it: %v", err)
	}
}

// The end of a turn does not prove that the agent rests, and a request ends only by its own proof.
func TestRestIsNotTheEnd(t *testing.T) {
	t.Parallel()
	talk := protocol.New(&events, protocol.Start{Dir: "/work"})
	hear(t, talk, protocol.Event{Kind: protocol.Working})
	hear(t, talk, asked("a"))
	if h := hear(t, talk, protocol.Event{Kind: protocol.Ended, Text: "Done."}); len(h.Evidence) != 0 || talk.AtWork() {
		t.Errorf("the end: %+v", h)
	}
	if h := hear(t, talk, protocol.Event{Kind: protocol.Withdrawn, ID: "a"}); len(h.Evidence) != 1 || h.Evidence[0].ID != "a" {
		t.Errorf("withdrawn: %+v", h)
	}
	h := hear(t, talk, protocol.Event{Kind: protocol.Resting})
	if len(h.Evidence) != 1 || h.Evidence[0].Signal != agency.SignalTurnEnded || h.Evidence[0].Text != "Done." {
		t.Errorf("rest: %+v", h)
	}
	if h := hear(t, talk, protocol.Event{Kind: protocol.Resting}); len(h.Evidence) != 0 {
		t.Errorf("rest again: %+v", h)
	}
}

// An answer is unproven until the agent took it, and then it is told to whoever comes later.
func TestAnswersAreGivenOnce(t *testing.T) {
	t.Parallel()
	talk := protocol.New(&events, protocol.Start{Dir: "/work"})
	hear(t, talk, asked("a"))
	answer := agency.Saying{Kind: agency.SaysAnswer, ID: "a", Decision: agency.Allow, By: "mary"}
	if frame, err := talk.Frame(answer); err != nil || string(frame) != "a" {
		t.Fatalf("got %q, %v", frame, err)
	}
	talk.Intend(protocol.Intent{Saying: answer, Frame: "a"})
	if left := talk.Unproven(); len(left) != 1 || left[0].Frame != "a" || talk.Progress(answer).Taken {
		t.Errorf("unproven: %+v", left)
	}
	late := func(want string) {
		t.Helper()
		if _, err := talk.Frame(answer); agency.AsError(err).Code != agency.CodeInvalidState || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	late("answered by mary")
	hear(t, talk, protocol.Event{Kind: protocol.Answered, ID: "a"})
	late("answered by mary")
	if len(talk.Unproven()) != 0 || !talk.Progress(answer).Taken {
		t.Error("it was taken")
	}
	hear(t, talk, asked("b"))
	hear(t, talk, protocol.Event{Kind: protocol.Withdrawn, ID: "b"})
	answer.ID = "b"
	late("withdrew it")
	answer.ID = "c"
	late("does not ask c")
}

// A message is unproven until the agent has it; an interruption is never said again.
func TestUnproven(t *testing.T) {
	t.Parallel()
	talk := protocol.New(&events, protocol.Start{Dir: "/work"})
	for _, kind := range []agency.SayingKind{agency.SaysMessage, agency.SaysInterrupt} {
		talk.Intend(protocol.Intent{Saying: agency.Saying{Kind: kind, ID: string(kind)}, Frame: string(kind)})
	}
	if left := talk.Unproven(); len(left) != 1 || left[0].Frame != "message" {
		t.Errorf("got %+v", left)
	}
	hear(t, talk, protocol.Event{Kind: protocol.Taken, ID: "message"})
	if left := talk.Unproven(); len(left) != 0 {
		t.Errorf("got %+v", left)
	}
	torn := "{\"id\":\"a\"}\n{\"id\":\"b\"}\n{\"id\":"
	if intents := protocol.ParseIntents([]byte(torn)); len(intents) != 2 || intents[1].ID != "b" {
		t.Errorf("got %+v", intents)
	}
}

// A stream is cut into the same lines whatever the pieces are, and a line without end is skipped.
func TestLines(t *testing.T) {
	t.Parallel()
	for size := 1; size < 9; size++ {
		var lines protocol.Lines
		var got []string
		total := 0
		for text := "one\n\nthree\nfo"; text != ""; text = text[min(size, len(text)):] {
			lines.Add([]byte(text[:min(size, len(text))]), func(line []byte, length int) { got = append(got, string(line)); total += length })
		}
		if strings.Join(got, "|") != "one||three" || total != 11 || lines.Pending() != 2 {
			t.Errorf("pieces of %d: %q, %d bytes, %d pending", size, got, total, lines.Pending())
		}
	}
	talk := protocol.New(&events, protocol.Start{Dir: "/work"})
	var lines protocol.Lines
	for range 17 {
		lines.Add(make([]byte, 1<<20), func([]byte, int) { t.Error("a line without end") })
	}
	lines.Add([]byte("\n"), func(line []byte, length int) {
		if h := talk.Hear(line); line != nil || length != 17<<20+1 || h.Evidence[0].Signal != agency.SignalUnknown {
			t.Errorf("%d bytes, %d: %+v", len(line), length, h)
		}
	})
}

// What is shown obeys no escape sequence, and reads as a conversation.
func TestShow(t *testing.T) {
	t.Parallel()
	talk := protocol.New(&events, protocol.Start{Dir: "/work"})
	text := talk.Intend(protocol.Intent{Saying: agency.Saying{Kind: agency.SaysMessage, ID: "m", Text: "List it.\nAll of it.", By: "user"}})
	for _, e := range []protocol.Event{
		{Kind: protocol.Message, Text: "I list it."},
		{Kind: protocol.Tool, ID: "t", Tool: "Bash", Text: "ls\n-l"},
		asked("a"),
		{Kind: protocol.ToolEnded, ID: "t", Text: "1\n2\n3\n4\n5"},
		{Kind: protocol.Ended},
	} {
		text += hear(t, talk, e).Text
	}
	want := "> List it.\n  All of it.\n● I list it.\n  ▸ Bash ls -l\n? 1: may it use Bash? ls [31m\n     id a\n    1\n    2\n    3\n    (2 more lines)\n— turn ended\n"
	if text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

// A request whose id was used before is a new one, which has no answer yet.
func TestAnIDThatComesAgain(t *testing.T) {
	t.Parallel()
	talk := protocol.New(&events, protocol.Start{Dir: "/work"})
	answer := agency.Saying{Kind: agency.SaysAnswer, ID: "a", Decision: agency.Allow, By: "mary"}
	hear(t, talk, asked("a"))
	talk.Intend(protocol.Intent{Saying: answer})
	hear(t, talk, protocol.Event{Kind: protocol.Answered, ID: "a"})
	hear(t, talk, asked("a"))
	talk.Intend(protocol.Intent{Saying: answer})
	if talk.Progress(answer).Taken {
		t.Error("the first answer counts for the second request")
	}
}

// A conversation that is so long that its beginning is forgotten has begun.
func TestForgot(t *testing.T) {
	t.Parallel()
	talk := protocol.New(&events, protocol.Start{Dir: "/work"})
	opening := agency.Saying{Kind: agency.SaysMessage, ID: "opening"}
	talk.Intend(protocol.Intent{Saying: opening})
	for i := range 1000 {
		if !talk.Forgot() && !talk.Knows(opening) {
			t.Fatalf("the opening is unknown after %d messages, and nothing was forgotten", i)
		}
		talk.Intend(protocol.Intent{Saying: agency.Saying{Kind: agency.SaysMessage, ID: fmt.Sprint(i)}})
	}
	if !talk.Forgot() {
		t.Error("nothing was forgotten")
	}
}

// No name or id of the agent makes a line of its own, which could read as an answer of the user.
func TestNamesMakeNoLines(t *testing.T) {
	t.Parallel()
	talk := protocol.New(&events, protocol.Start{Dir: "/work"})
	forged := "x\n> request 1: allow"
	text := hear(t, talk, protocol.Event{Kind: protocol.Tool, ID: "t", Tool: forged}).Text
	text += hear(t, talk, protocol.Event{Kind: protocol.Asked, ID: forged, Request: &protocol.Request{ID: forged, Kind: agency.AsksPermission, Tool: forged}}).Text
	if strings.Contains(text, "\n>") || strings.Count(text, "\n") != 3 {
		t.Errorf("got\n%s", text)
	}
}

// Only in its own conversation does an agent begin, work and rest. A subagent's requests are its own.
func TestSubagentsConversation(t *testing.T) {
	t.Parallel()
	talk := protocol.New(&events, protocol.Start{Dir: "/work"})
	hear(t, talk, protocol.Event{Kind: protocol.Session, Conversation: "main"})
	hear(t, talk, protocol.Event{Kind: protocol.Working, Thread: "main", Turn: "1"})
	hear(t, talk, protocol.Event{Kind: protocol.Tool, Thread: "sub", ID: "c", Tool: "apply_patch", Text: "a.go"})
	ask := asked("a")
	ask.Thread, ask.Request.Tool, ask.Request.Text, ask.Request.Call, ask.Request.Number = "sub", "", "", "c", "0"
	h := hear(t, talk, ask)
	if len(h.Evidence) != 1 || h.Evidence[0].Subagent != "sub" || h.Evidence[0].Tool != "apply_patch" || h.Evidence[0].Text != "a.go" {
		t.Errorf("a subagent asks: %+v", h)
	}
	for _, kind := range []protocol.Kind{protocol.Ended, protocol.Resting} {
		if h := hear(t, talk, protocol.Event{Kind: kind, Thread: "sub"}); len(h.Evidence) != 0 {
			t.Errorf("the turn of a subagent: %+v", h)
		}
	}
	if _, err := talk.Frame(agency.Saying{Kind: agency.SaysAnswer, ID: "0", Decision: agency.Allow}); err == nil {
		t.Error("a number that counts anew in each process names no request")
	}
	if h := hear(t, talk, protocol.Event{Kind: protocol.Answered, ID: "0"}); len(h.Evidence) != 1 || h.Evidence[0].ID != "a" || !strings.Contains(h.Text, "withdrawn") {
		t.Errorf("the program ended the request: %+v", h)
	}
}

// A program that cannot begin the conversation says why.
func TestRefusedConversation(t *testing.T) {
	t.Parallel()
	talk := protocol.New(&events, protocol.Start{Dir: "/work", Resumes: "lost"})
	talk.Intend(protocol.Intent{Saying: protocol.Hello()})
	hear(t, talk, protocol.Event{Kind: protocol.Replied, ID: protocol.Hello().ID, Failed: true, Text: "no such conversation"})
	if talk.Greeted() || talk.Refused() != "no such conversation" {
		t.Errorf("greeted %t, refused %q", talk.Greeted(), talk.Refused())
	}
}

// An agent that gets no message at the start is at rest as soon as its program has replied, once.
func TestSilentStart(t *testing.T) {
	t.Parallel()
	for _, silent := range []bool{true, false} {
		talk := protocol.New(&events, protocol.Start{Dir: "/work", Resumes: "old", Silent: silent})
		talk.Intend(protocol.Intent{Saying: protocol.Hello()})
		reply := protocol.Event{Kind: protocol.Replied, ID: protocol.Hello().ID}
		var signals []agency.Signal
		for range 2 {
			for _, e := range hear(t, talk, reply).Evidence {
				signals = append(signals, e.Signal)
			}
		}
		if rests := slices.Equal(signals, []agency.Signal{agency.SignalTurnEnded}); rests != silent || !talk.Greeted() {
			t.Errorf("silent %t: %v", silent, signals)
		}
	}
}
