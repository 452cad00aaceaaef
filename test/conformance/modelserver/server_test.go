package modelserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agency/test/conformance/modelserver"
)

// api is one API with requests of a test.
type api struct {
	path    string
	opening string // a stream with tools, no turn so far
	second  string // the same after the first turn
	title   string // beside the conversation, as JSON with a schema
}

func apis() map[string]api {
	return map[string]api{
		"messages": {
			path: "/v1/messages",
			opening: `{"model":"m","stream":true,"tools":[{"name":"Bash"},{"name":"Write"}],
			"messages":[{"role":"user","content":[{"type":"text","text":"be brief"},{"type":"text","text":"begin"}]}]}`,
			second: `{"model":"m","stream":true,"tools":[{"name":"Bash"},{"name":"Write"}],
			"messages":[{"role":"user","content":"begin"},{"role":"assistant","content":[{"type":"tool_use"}]},
			{"role":"user","content":[{"type":"tool_result","content":"done"}]}]}`,
			title: `{"model":"m","messages":[{"role":"user","content":"begin"}],
			"output_config":{"format":{"type":"json_schema","schema":{"properties":{"title":{"type":"string"}}}}}}`,
		},
		"responses": {
			path: "/v1/responses",
			opening: `{"model":"m","stream":true,"tools":[{"type":"function","name":"exec_command"},{"type":"custom","name":"apply_patch"}],
			"input":[{"type":"message","role":"developer","content":[]},
			{"type":"message","role":"user","content":[{"type":"input_text","text":"be brief"},{"type":"input_text","text":"begin"}]}]}`,
			second: `{"model":"m","stream":true,"tools":[{"type":"function","name":"exec_command"},{"type":"custom","name":"apply_patch"}],
			"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"begin"}]},
			{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I begin"}]},
			{"type":"custom_tool_call","name":"apply_patch"},{"type":"custom_tool_call_output","output":"done"}]}`,
			title: `{"model":"m","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"begin"}]}],
			"text":{"format":{"type":"json_schema","schema":{"properties":{"title":{"type":"string"}}}}}}`,
		},
	}
}

func start(t *testing.T, scenario modelserver.Scenario) *modelserver.Server {
	t.Helper()
	s := modelserver.Start(scenario)
	t.Cleanup(s.Close)
	return s
}

// answer is a response, as far as it was read.
type answer struct {
	*bufio.Reader
	status int
}

func ask(t *testing.T, s *modelserver.Server, path, body string) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return answer{bufio.NewReader(resp.Body), resp.StatusCode}
}

// text returns the rest of the answer.
func (a answer) text(t *testing.T) string {
	t.Helper()
	body, err := io.ReadAll(a)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// kinds returns the kinds of events in a stream, in order.
func kinds(stream string) []string {
	var list []string
	for line := range strings.Lines(stream) {
		if kind, ok := strings.CutPrefix(line, "event: "); ok {
			list = append(list, strings.TrimSpace(kind))
		}
	}
	return list
}

func TestTurns(t *testing.T) {
	t.Parallel()
	want := map[string][]string{
		"messages": {
			"message_start", "content_block_start", "content_block_delta", "content_block_stop",
			"content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop",
		},
		"responses": {
			"response.created", "response.output_item.added", "response.output_text.delta", "response.output_item.done",
			"response.output_item.added", "response.output_item.done", "response.completed",
		},
	}
	calls := map[string]string{"messages": `"name":"Write"`, "responses": `*** Add File: a.txt\n+one\n+two\n*** End Patch`}
	for name, a := range apis() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, modelserver.Scenario{
				{Text: "I begin", Write: &modelserver.File{Path: "a.txt", Content: "one\ntwo\n"}},
				{Shell: "make"},
			})
			first := ask(t, s, a.path, a.opening).text(t)
			if diff := cmp.Diff(want[name], kinds(first)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if !strings.Contains(first, calls[name]) || !strings.Contains(first, "I begin") {
				t.Errorf("no text or no %s in\n%s", calls[name], first)
			}
			for range 2 { // a retry gets the same turn
				if second := ask(t, s, a.path, a.second).text(t); !strings.Contains(second, "make") {
					t.Errorf("the second turn is\n%s", second)
				}
			}
			type seen struct {
				Turn  int
				Heard string
			}
			var got []seen
			for _, r := range s.Requests() {
				got = append(got, seen{r.Turn, r.Heard})
			}
			if diff := cmp.Diff([]seen{{0, "be brief\nbegin"}, {1, "begin"}, {1, "begin"}}, got); diff != "" {
				t.Errorf("log (-want +got):\n%s", diff)
			}
		})
	}
}

// The conversation of a subagent is recognised by its prompt, and has a scenario of its own.
func TestSubagent(t *testing.T) {
	t.Parallel()
	s := start(t, modelserver.Scenario{
		{Subagent: &modelserver.Subagent{Prompt: "You help.", Scenario: modelserver.Scenario{{Text: "I helped."}}}},
	})
	const tools = `"stream":true,"tools":[{"name":"Agent"}]`
	begun := ask(t, s, "/v1/messages", `{`+tools+`,"messages":[{"role":"user","content":"begin"}]}`).text(t)
	helped := ask(t, s, "/v1/messages", `{`+tools+`,"messages":[{"role":"user","content":"You help."}]}`).text(t)
	if !strings.Contains(begun, `"name":"Agent"`) || !strings.Contains(helped, "I helped.") {
		t.Errorf("got\n%s\n%s", begun, helped)
	}
	if r := s.Requests(); r[0].Subagent != "" || r[1].Subagent != "You help." {
		t.Errorf("got the helpers %q and %q", r[0].Subagent, r[1].Subagent)
	}
}

func TestSideRequestTakesNoTurn(t *testing.T) {
	t.Parallel()
	for name, a := range apis() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, modelserver.Scenario{{Status: http.StatusTeapot}})
			got := ask(t, s, a.path, a.title)
			body := got.text(t)
			if got.status != http.StatusOK || !json.Valid([]byte(body)) || !strings.Contains(body, `{\"title\":`) {
				t.Errorf("got %d\n%s", got.status, body)
			}
			if r := s.Requests()[0]; !r.Side {
				t.Error("it is not a side request in the log")
			}
		})
	}
}

func TestGateHoldsTheAnswer(t *testing.T) {
	t.Parallel()
	for name, a := range apis() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gate := make(chan struct{})
			s := start(t, modelserver.Scenario{{Text: "at last", Gate: gate}})
			stream := ask(t, s, a.path, a.opening)
			if line, err := stream.ReadString('\n'); err != nil || !strings.HasPrefix(line, "event: ") {
				t.Fatalf("before the gate: %q, %v", line, err)
			}
			close(gate)
			if rest, err := io.ReadAll(stream); err != nil || !strings.Contains(string(rest), "at last") {
				t.Errorf("behind the gate: %q, %v", rest, err)
			}
		})
	}
}

func TestCloseEndsWhatWaitsAtAGate(t *testing.T) {
	t.Parallel()
	s := modelserver.Start(modelserver.Scenario{{Text: "never said", Gate: make(chan struct{})}})
	waiting := ask(t, s, apis()["messages"].path, apis()["messages"].opening)
	s.Close()
	if body, err := io.ReadAll(waiting); err == nil || strings.Contains(string(body), "never said") {
		t.Errorf("got %q, %v", body, err)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for name, a := range apis() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, modelserver.Scenario{{Status: http.StatusTooManyRequests}, {Read: "a.txt"}})
			toolless := strings.NewReplacer("Bash", "Other", "exec_command", "other").Replace(a.second)
			tests := []struct {
				path, body string
				status     int
				say        string
			}{
				{a.path, a.opening, http.StatusTooManyRequests, "rate_limit_error"},
				{a.path, toolless, http.StatusBadRequest, "the client offers none of"},
				{a.path, "{", http.StatusBadRequest, "unreadable"},
				{"/v1/other", "{}", http.StatusNotFound, "no such path"},
			}
			for _, tt := range tests {
				got := ask(t, s, tt.path, tt.body)
				if body := got.text(t); got.status != tt.status || !strings.Contains(body, tt.say) {
					t.Errorf("%s: got %d\n%s\nwant %d and %q", tt.body, got.status, body, tt.status, tt.say)
				}
			}
		})
	}
}

func TestCountTokens(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	if body := ask(t, s, "/v1/messages/count_tokens", `{"messages":[]}`).text(t); body != "{\"input_tokens\":4}\n" {
		t.Errorf("got %s", body)
	}
}

func TestAwait(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	came := make(chan modelserver.Request)
	go func() {
		r, err := s.Await(t.Context(), func(r modelserver.Request) bool { return r.Heard == "begin" })
		if err != nil {
			t.Error(err)
		}
		came <- r
	}()
	a := apis()["messages"]
	ask(t, s, a.path, a.opening).text(t)
	ask(t, s, a.path, a.second).text(t)
	if r := <-came; r.Turn != 1 {
		t.Errorf("got turn %d, want 1", r.Turn)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Await(over, func(modelserver.Request) bool { return false }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v after the end of the context", err)
	}
}
