package opencode_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/harness"
	"agency/internal/harness/harnesstest"
)

// This is what the plugin of OpenCode 1.18.33 passed on, with the labels that follow from it.
func TestOpenCodeLabels(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		labels []agency.Label
		say    string // in the last summary
	}{
		{"text", []agency.Label{agency.Working, agency.Waiting}, "its turn ended"},
		{"perm-once", []agency.Label{agency.Working, agency.NeedsInput, agency.Working, agency.Waiting}, "its turn ended"},
		{"perm-reject", []agency.Label{agency.Working, agency.NeedsInput, agency.Working, agency.Waiting}, "its turn ended"},
		{"ask", []agency.Label{agency.Working, agency.NeedsInput, agency.Working, agency.Waiting}, "its turn ended"},
		{"abort", []agency.Label{agency.Working, agency.Waiting}, "interrupted"},
		{"err-401", []agency.Label{agency.Working, agency.Waiting}, "auth"},
		{"err-429-twice", []agency.Label{agency.Working, agency.Waiting}, "its turn ended"},
		{"err-400", []agency.Label{agency.Working, agency.Waiting}, "its turn ended"}, // OpenCode summed the conversation up, and continued
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var all harnesstest.Folded
			at := time.Now()
			for _, payload := range harnesstest.Lines(t, "testdata/"+tt.name+".jsonl") {
				at = at.Add(time.Second)
				all.Fold(harness.Hook("opencode", payload), at)
			}
			if diff := cmp.Diff(tt.labels, all.Labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			if !strings.Contains(all.Status.Summary, tt.say) {
				t.Errorf("got %q at the end, want %q", all.Status.Summary, tt.say)
			}
			if s := all.AgentState; s.Conversation == "" || s.Model != "model/model-model" || len(s.Unknown) > 0 || len(s.Tools) > 0 {
				t.Errorf("got %+v", s)
			}
		})
	}
}

func TestOpenCodeReportsWhatItAsks(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, want string }{
		{"perm-once", "permission bash mkdir -p made-by-model && date > made-by-model/stamp.txt"},
		{"ask", "question  Which colour should the model use?"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var asked []string
			for _, payload := range harnesstest.Lines(t, "testdata/"+tt.name+".jsonl") {
				for _, e := range harness.Hook("opencode", payload) {
					if e.Signal == agency.SignalAsked {
						asked = append(asked, string(e.Kind)+" "+e.Tool+" "+e.Text)
					}
				}
			}
			if diff := cmp.Diff([]string{tt.want}, asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}

// A repeated call shows in the status, and so does a conversation that is too long when OpenCode
// does nothing about it.
func TestOpenCodeErrors(t *testing.T) {
	t.Parallel()
	event := func(kind, properties string) string {
		return `[{"type":"` + kind + `","properties":` + properties + `}]`
	}
	busy := event("session.status", `{"sessionID":"s","status":{"type":"busy"}}`)
	tests := []struct {
		name     string
		payloads []string
		label    agency.Label
		say      string
	}{
		{
			"retry",
			[]string{busy, event("session.status", `{"sessionID":"s","status":{"type":"retry","attempt":1,"message":"Too Many Requests"}}`)},
			agency.Working, "rate limit: Too Many Requests; trying again",
		},
		{"context", []string{
			busy, event("session.error", `{"sessionID":"s","error":{"name":"ContextOverflowError","data":{"message":"too long"}}}`),
		}, agency.Working, "context: too long; trying again"},
		{"context in the end", []string{
			busy, event("session.error", `{"sessionID":"s","error":{"name":"ContextOverflowError","data":{"message":"too long"}}}`),
			event("session.idle", `{"sessionID":"s","error":{"name":"ContextOverflowError","data":{"message":"too long"}}}`),
		}, agency.Waiting, "context: too long"},
		{"billing", []string{
			busy, event("session.error", `{"sessionID":"s","error":{"name":"APIError","data":{"message":"insufficient_quota","statusCode":429}}}`),
		}, agency.Waiting, "billing"},
		{"overloaded", []string{
			busy, event("session.error", `{"sessionID":"s","error":{"name":"APIError","data":{"message":"Overloaded","statusCode":529}}}`),
		}, agency.Waiting, "overloaded"},
		{"no key", []string{
			busy, event("session.error", `{"sessionID":"s","error":{"name":"ProviderAuthError","data":{"message":"no key"}}}`),
		}, agency.Waiting, "auth: no key"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var all harnesstest.Folded
			at := time.Now()
			for _, payload := range tt.payloads {
				at = at.Add(time.Second)
				all.Fold(harness.Hook("opencode", []byte(payload)), at)
			}
			if all.Status.Label != tt.label || !strings.Contains(all.Status.Summary, tt.say) {
				t.Errorf("got %s %q, want %s %q", all.Status.Label, all.Status.Summary, tt.label, tt.say)
			}
		})
	}
}

// The session of a subagent asks for the agent, and its end ends only itself.
func TestOpenCodeSubagents(t *testing.T) {
	t.Parallel()
	var all harnesstest.Folded
	at := time.Now()
	tell := func(payload string) agency.Label {
		at = at.Add(time.Second)
		all.Fold(harness.Hook("opencode", []byte(payload)), at)
		return all.Status.Label
	}
	tell(`[{"type":"chat.message","properties":{"sessionID":"main"}},{"type":"session.status","properties":{"sessionID":"main","status":{"type":"busy"}}}]`)
	tell(`[{"type":"session.updated","properties":{"sessionID":"main","info":{"id":"main","tokens":{"input":5,"output":1,"cache":{}}}}}]`)
	tell(`[{"type":"session.updated","parent":"main","properties":{"sessionID":"child","info":{"id":"child","parentID":"main","tokens":{"input":9,"output":9,"cache":{}}}}}]`)
	if got := tell(`[{"type":"permission.asked","parent":"main","properties":{"id":"p","sessionID":"child","permission":"edit","patterns":["a.txt"]}}]`); got != agency.NeedsInput {
		t.Errorf("got %s while a helper asks", got)
	}
	if got := tell(`[{"type":"permission.replied","parent":"main","properties":{"sessionID":"child","requestID":"p","reply":"once"}}]`); got != agency.Working {
		t.Errorf("got %s after the answer", got)
	}
	if got := tell(`[{"type":"session.idle","parent":"main","properties":{"sessionID":"child"}}]`); got != agency.Working {
		t.Errorf("got %s after the helper's end", got)
	}
	if s := all.AgentState; s.Conversation != "main" || *s.Usage.InputTokens != 5 {
		t.Errorf("got conversation %q and usage %d, want the agent's own", s.Conversation, *s.Usage.InputTokens)
	}
	if got := tell(`[{"type":"session.idle","properties":{"sessionID":"main","text":"done"}}]`); got != agency.Waiting {
		t.Errorf("got %s after the agent's end", got)
	}
}

// This is the output of OpenCode without a terminal.
func TestOpenCodeStream(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name          string
		labels        []agency.Label
		say           string
		input, output int64
	}{
		{"run-shell", []agency.Label{agency.Working, agency.Waiting}, "its turn ended", 200, 41},
		{"run-err-429-twice", []agency.Label{agency.Working, agency.Waiting}, "its turn ended", 100, 7},
		{"run-perm-reject", []agency.Label{agency.Working}, "", 100, 37}, // it exits by itself
		{"run-err-401", []agency.Label{agency.Waiting}, "auth: invalid x-api-key", 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var all harnesstest.Folded
			at := time.Now()
			for _, line := range harnesstest.Lines(t, "testdata/"+tt.name+".stream.jsonl") {
				at = at.Add(time.Second)
				all.Fold(harness.Stream("opencode", line), at)
			}
			if diff := cmp.Diff(tt.labels, all.Labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			used := func(n *int64) int64 {
				if n == nil {
					return 0
				}
				return *n
			}
			s := all.AgentState
			if !strings.Contains(all.Status.Summary, tt.say) || used(s.Usage.InputTokens) != tt.input || used(s.Usage.OutputTokens) != tt.output {
				t.Errorf("got %q, %d, %d, want %q, %d, %d", all.Status.Summary, used(s.Usage.InputTokens), used(s.Usage.OutputTokens), tt.say, tt.input, tt.output)
			}
			if !strings.HasPrefix(s.Conversation, "ses_") || s.Usage.CostUSD != nil {
				t.Errorf("got conversation %q and cost %v", s.Conversation, s.Usage.CostUSD)
			}
		})
	}
}

// OpenCode's server gets a password, a new one for each attempt, unless the user has chosen one.
func TestOpenCodePassword(t *testing.T) {
	t.Parallel()
	password := func(env ...string) string {
		c, err := harness.Build(agency.CommandRequest{Runner: agency.Runner{Kind: "opencode"}, Exec: harnesstest.Program(t), Mode: agency.ModeProtocol, Env: env})
		if err != nil {
			t.Fatal(err)
		}
		return agency.Environ(c.Env).Lookup("OPENCODE_SERVER_PASSWORD")
	}
	if one, two := password(), password(); len(one) < 20 || one == two {
		t.Errorf("got %q, then %q", one, two)
	}
	if got := password("OPENCODE_SERVER_PASSWORD=mine"); got != "" {
		t.Errorf("the user's own is replaced by %q", got)
	}
}

// The plugin and the instructions are added to the configuration in the user's environment; an
// unreadable one stays unchanged.
func TestOpenCodeConfig(t *testing.T) {
	t.Parallel()
	const plugin = "file:///runs/it%27s%201/opencode-plugin.js"
	tests := []struct {
		name, users string
		want        map[string]any // nil when nothing is set
	}{
		{"none", "", map[string]any{"plugin": []any{plugin}, "instructions": []any{agency.InstructionsFile}}},
		{"the user's own", `{"plugin":["mine",["theirs",{"a":1}]],"instructions":["x.md"],"share":"disabled"}`, map[string]any{
			"plugin":       []any{"mine", []any{"theirs", map[string]any{"a": 1.0}}, plugin},
			"instructions": []any{"x.md", agency.InstructionsFile}, "share": "disabled",
		}},
		{"with comments", "{ // mine\n}", nil},
		{"no object", "[]", nil},
		{"a plugin that is no list", `{"plugin":"mine"}`, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, err := harness.Build(agency.CommandRequest{
				Runner: agency.Runner{Kind: "opencode"}, Exec: harnesstest.Program(t), AttemptDir: "/runs/it's 1",
				Hook: []string{"/opt/it's/agency", "hook"}, Env: []string{"OPENCODE_CONFIG_CONTENT=" + tt.users},
			})
			if err != nil {
				t.Fatal(err)
			}
			var got map[string]any
			for _, kv := range c.Env {
				if content, ok := strings.CutPrefix(kv, "OPENCODE_CONFIG_CONTENT="); ok {
					if err := json.Unmarshal([]byte(content), &got); err != nil {
						t.Fatal(err)
					}
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("config (-want +got):\n%s", diff)
			}
			source := string(c.Files["opencode-plugin.js"])
			if has := strings.Contains(source, `const command = ["/opt/it's/agency","hook","opencode"]`); has != (tt.want != nil) || strings.Contains(source, "HEADLESS") {
				t.Errorf("the plugin is\n%s", source)
			}
		})
	}
}

func FuzzOpenCode(f *testing.F) {
	for _, name := range []string{"perm-once.jsonl", "err-401.jsonl", "ask.jsonl", "run-shell.stream.jsonl", "run-err-401.stream.jsonl"} {
		for _, line := range harnesstest.Lines(f, "testdata/"+name) {
			f.Add(line)
		}
	}
	f.Fuzz(func(_ *testing.T, data []byte) {
		var all harnesstest.Folded
		all.Fold(harness.Hook("opencode", data), time.Now())
		all.Fold(harness.Stream("opencode", data), time.Now())
		all.Fold(harness.Screen("opencode", strings.Split(string(data), "\n")), time.Now())
	})
}
