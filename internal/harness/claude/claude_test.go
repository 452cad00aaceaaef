package claude_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/harness"
	"agency/internal/status"
)

// replay plays a run of Claude Code from what a real one emitted.
type replay struct {
	t          *testing.T
	config     string // its configuration folder
	lines      []string
	agentState agency.AgentState
	now        time.Time
	transcript string
}

func newReplay(t *testing.T, recorded string) *replay {
	t.Helper()
	r := &replay{t: t, config: t.TempDir(), now: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)}
	if recorded == "" {
		return r
	}
	data, err := os.ReadFile(filepath.Join("testdata", recorded))
	if err != nil {
		t.Fatal(err)
	}
	r.lines = strings.Split(strings.TrimSpace(strings.ReplaceAll(string(data), "/home/dev/.claude", r.config)), "\n")
	return r
}

var claudeProcess = &agency.Process{PID: 7}

func (r *replay) observe(evidence []agency.Evidence) {
	for _, e := range evidence {
		r.now = r.now.Add(time.Second)
		e.At = r.now
		status.Observe(&r.agentState, e)
	}
}

// do takes one step: "hook" and "line" are the next recorded one, "title X" is a title, "status X"
// a state in the session file, "late X" a state that is older than the last step, and "says X" a
// line of the transcript.
func (r *replay) do(step string) {
	r.t.Helper()
	what, rest, _ := strings.Cut(step, " ")
	switch what {
	case "hook":
		r.observe(harness.Hook("claude_code", []byte(r.lines[0])))
		r.lines = r.lines[1:]
	case "line":
		r.observe(harness.Stream("claude_code", []byte(r.lines[0])))
		r.lines = r.lines[1:]
	case "title":
		r.observe(harness.Title("claude_code", rest))
	case "status", "late":
		since := r.now.Add(time.Second)
		if what == "late" {
			since = r.now.Add(-time.Second)
		}
		status, waiting, _ := strings.Cut(rest, " ")
		data, err := json.Marshal(map[string]any{
			"pid": 7, "sessionId": r.agentState.Conversation, "status": status, "waitingFor": waiting, "statusUpdatedAt": since.UnixMilli(),
		})
		if err != nil {
			r.t.Fatal(err)
		}
		r.file(".json", data)
	case "says":
		r.transcript += rest + "\n"
		r.file(".jsonl", []byte(r.transcript))
	default:
		r.t.Fatalf("no such step: %s", step)
	}
}

// file writes the agent's own file of that kind and has it read.
func (r *replay) file(ext string, data []byte) {
	r.t.Helper()
	for _, path := range harness.Files("claude_code", &r.agentState, claudeProcess) {
		if filepath.Ext(path) != ext {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			r.t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			r.t.Fatal(err)
		}
		r.observe(harness.ReadFile("claude_code", path, &r.agentState))
		if again := harness.ReadFile("claude_code", path, &r.agentState); len(again) > 0 {
			r.t.Errorf("%s: what was read is read again: %+v", ext, again)
		}
		return
	}
	r.t.Fatalf("the agent state leads to no %s file", ext)
}

func (r *replay) status() agency.Status {
	run := &agency.Run{Attempt: agency.Attempt{Number: 1, State: agency.Running, StartedAt: &r.now, AgentState: r.agentState}}
	return status.Derive(status.Facts{Run: run, StallThreshold: agency.StallThreshold}, r.now)
}

const (
	userLine     = `{"type":"user","message":{"role":"user","content":"go on"}}`
	callLine     = `{"type":"api-request","querySource":"repl_main_thread"}`
	answerLine   = `{"type":"assistant","message":{"id":"msg_1","content":[{"type":"text","text":"ok"}],"usage":{"input_tokens":100,"cache_read_input_tokens":50,"output_tokens":7}}}`
	interrupted  = `{"type":"user","message":{"role":"user","content":[{"type":"text","text":"[Request interrupted by user for tool use]"}]}}`
	sidechain    = `{"type":"user","isSidechain":true,"message":{"content":[{"type":"text","text":"[Request interrupted by user]"}]}}`
	modeLine     = `{"type":"mode","mode":"normal"}`
	backgrounded = `{"hook_event_name":"Stop","last_assistant_message":"It runs.","background_tasks":[{"id":"b1","type":"shell","status":"running"}]}`
)

const active, working, waiting, needs = agency.Active, agency.Working, agency.Waiting, agency.NeedsInput

type labelStep struct {
	do   string
	want agency.Label
}

// recordedLabels are recorded sessions, and the label after each of their steps.
var recordedLabels = []struct {
	name, recorded string
	steps          []labelStep
	summary        string
}{
	{"a text", "exit-slash.hooks.jsonl", []labelStep{
		{"hook", active},
		{"status idle", active},
		{"hook", working},
		{"status busy", working},
		{"title ◐ Claude Code", working},
		{"hook", waiting},
		{"status idle", waiting},
		{"title ✳ Claude Code", waiting},
		{"hook", waiting},
	}, "(its turn ended)"},
	{"permission given", "perm-allow.hooks.jsonl", []labelStep{
		{"hook", active},
		{"hook", working},
		{"status busy", working},
		{"hook", working},
		{"title ✳ Claude Code", working},
		{"hook", needs},
		{"status waiting permission prompt", needs},
		{"hook", needs},
		{"status busy", working},
		{"title ◐ Claude Code", working},
		{"hook", working},
		{"hook", waiting},
		{"status idle", waiting},
	}, "(its turn ended)"},
	{"permission given, and the session file is read late", "perm-allow.hooks.jsonl", []labelStep{
		{"hook", active},
		{"status idle", active},
		{"hook", working},
		{"hook", working},
		{"hook", needs},
		{"status busy", needs},
		{"status waiting permission prompt", needs},
		{"hook", needs},
		{"hook", working},
	}, ""},
	{"permission given, without a session file", "perm-allow.hooks.jsonl", []labelStep{
		{"hook", active},
		{"hook", working},
		{"title ◐ Claude Code", working},
		{"hook", working},
		{"hook", needs},
		{"title ✳ Claude Code", needs},
		{"hook", needs},
		{"title ◐ Claude Code", working},
		{"hook", working},
		{"hook", waiting},
	}, "(its turn ended)"},
	{"permission denied", "perm-deny.hooks.jsonl", []labelStep{
		{"hook", active}, {"hook", working}, {"hook", working}, {"hook", needs}, {"status waiting permission prompt", needs}, {"status idle", waiting},
	}, "(its turn ended)"},
	{"Escape at the dialog", "perm-esc.hooks.jsonl", []labelStep{
		{"hook", active},
		{"says " + modeLine, active},
		{"hook", working},
		{"says " + userLine, working},
		{"hook", working},
		{"hook", needs},
		{"status waiting permission prompt", needs},
		{"status idle", waiting},
		{"says " + interrupted, waiting},
	}, "(interrupted)"},
	{"Escape at the dialog, while no client watched", "perm-esc.hooks.jsonl", []labelStep{
		{"hook", active}, {"status idle", active}, {"hook", working}, {"hook", working}, {"hook", needs}, {"status idle", waiting},
	}, "(its turn ended)"},
	{"Escape in a text", "esc-stream.hooks.jsonl", []labelStep{
		{"hook", active}, {"hook", working}, {"status busy", working}, {"says " + sidechain, working}, {"says " + interrupted, waiting}, {"status idle", waiting},
	}, "(interrupted)"},
	{"Escape without a session file", "esc-stream.hooks.jsonl", []labelStep{
		{"hook", active}, {"hook", working}, {"title ⠂ Claude Code", working}, {"title ✳ Claude Code", waiting},
	}, "(its turn ended)"},
	{"a question", "ask.hooks.jsonl", []labelStep{
		{"hook", active},
		{"hook", working},
		{"hook", needs},
		{"hook", needs},
		{"status waiting input needed", needs},
		{"hook", needs},
		{"status busy", working},
		{"hook", working},
		{"hook", waiting},
	}, "(its turn ended)"},
	{"a question that was answered unseen", "ask.hooks.jsonl", []labelStep{
		{"hook", active}, {"hook", working}, {"hook", needs}, {"hook", needs}, {"hook", needs}, {"hook", working},
	}, ""},
	{"a tool that fails", "tool-fail.hooks.jsonl", []labelStep{
		{"hook", active}, {"hook", working}, {"hook", working}, {"hook", working}, {"hook", waiting},
	}, "(its turn ended)"},
	{"a conversation that is too long", "err-400.hooks.jsonl", []labelStep{
		{"hook", active}, {"hook", working}, {"hook", waiting}, {"status idle", waiting},
	}, "(context: Prompt is too long"},
	{"a key that is not valid", "err-401-max1.hooks.jsonl", []labelStep{
		{"hook", active}, {"hook", working}, {"hook", waiting}, {"status idle", waiting},
	}, "(auth: Invalid API key"},
	{"an error at once, and the session file is read late", "err-400.hooks.jsonl", []labelStep{
		{"hook", active}, {"status idle", active}, {"hook", working}, {"hook", waiting}, {"late busy", waiting}, {"status idle", waiting},
	}, "(context: Prompt is too long"},
	{"a prompt, and the session file of before is read late", "exit-slash.hooks.jsonl", []labelStep{
		{"hook", active}, {"hook", working}, {"late idle", working}, {"status busy", working}, {"status idle", waiting},
	}, "(its turn ended)"},
	{"a rate limit", "err-429-max1.hooks.jsonl", []labelStep{
		{"hook", active},
		{"hook", working},
		{"says " + userLine, working},
		{"says " + callLine, working},
		{"says " + callLine, working},
		{"hook", waiting},
		{"status idle", waiting},
	}, "(rate limit: API Error"},
	{"a call that is tried again", "err-429-max1.hooks.jsonl", []labelStep{
		{"hook", active}, {"hook", working}, {"says " + userLine + "\n" + callLine, working}, {"says " + callLine, working},
	}, "(other: the model did not answer; trying again)"},
	{"calls of the model that are answered", "err-429-max1.hooks.jsonl", []labelStep{
		{"hook", active}, {"hook", working}, {"says " + callLine + "\n" + answerLine, working}, {"says " + answerLine, working}, {"says " + userLine + "\n" + callLine, working},
	}, ""},
	{"an end by a signal", "exit-sigterm.hooks.jsonl", []labelStep{
		{"hook", active}, {"hook", working}, {"status busy", working}, {"hook", working},
	}, ""},
	{"a text without a terminal", "headless-text.stream.jsonl", []labelStep{
		{"line", working}, {"line", working}, {"line", working}, {"line", waiting}, {"line", waiting},
	}, "(its turn ended)"},
	{"a tool that no user can permit", "headless-shell-manual.stream.jsonl", []labelStep{
		{"line", working}, {"line", working}, {"line", working}, {"line", working}, {"line", working}, {"line", working}, {"line", working}, {"line", waiting}, {"line", waiting},
	}, "(its turn ended)"},
	{"a host that is asked", "headless-shell-host.stream.jsonl", []labelStep{
		{"line", working},
		{"line", working},
		{"line", working},
		{"line", working},
		{"line", needs},
		{"line", needs},
		{"line", working},
		{"line", working},
		{"line", working},
		{"line", waiting},
		{"line", waiting},
	}, "(its turn ended)"},
	{"too long without a terminal", "headless-400.stream.jsonl", []labelStep{
		{"line", working}, {"line", working}, {"line", working}, {"line", waiting}, {"line", waiting},
	}, "(context: Prompt is too long"},
	{"a key that is not valid, without a terminal", "headless-401-max1.stream.jsonl", []labelStep{
		{"line", working}, {"line", working}, {"line", working}, {"line", working}, {"line", waiting}, {"line", waiting},
	}, "(auth: Invalid API key"},
	{"a rate limit without a terminal", "headless-429-max1.stream.jsonl", []labelStep{
		{"line", working}, {"line", working}, {"line", working}, {"line", working}, {"line", waiting}, {"line", waiting},
	}, "(rate limit: API Error"},
	{"an overload without a terminal", "headless-529-max1.stream.jsonl", []labelStep{
		{"line", working}, {"line", working}, {"line", working}, {"line", working}, {"line", waiting}, {"line", waiting},
	}, "(overloaded: API Error: 529"},
	{"a conversation that does not exist", "headless-resume-unknown.stream.jsonl", []labelStep{{"line", waiting}}, "(other: No conversation found"},
}

// Every step of a recorded session shows the label that a user would expect.
func TestClaudeLabels(t *testing.T) {
	t.Parallel()
	for _, tt := range recordedLabels {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newReplay(t, tt.recorded)
			for i, step := range tt.steps {
				r.do(step.do)
				if got := r.status(); got.Label != step.want {
					t.Fatalf("step %d, %s: got %s (%s), want %s", i, step.do, got.Label, got.Summary, step.want)
				}
			}
			if got := r.status().Summary; !strings.HasPrefix(got, tt.summary) {
				t.Errorf("summary: got %q, want %q", got, tt.summary)
			}
			if len(r.agentState.Unknown) > 0 {
				t.Errorf("not understood: %v", r.agentState.Unknown)
			}
		})
	}
}

func TestClaudeReportsWhatItAsks(t *testing.T) {
	t.Parallel()
	for recorded, want := range map[string]agency.Request{
		"perm-deny.hooks.jsonl": {Kind: agency.AsksPermission, Tool: "Bash", Text: "mkdir -p made && date > made/stamp.txt"},
		"ask.hooks.jsonl":       {Kind: agency.AsksQuestion, Tool: "AskUserQuestion", Text: "Which colour should it use?"},
	} {
		r := newReplay(t, recorded)
		for range 4 {
			r.do("hook")
		}
		got := r.status().Request
		if got == nil || got.Kind != want.Kind || got.Tool != want.Tool || got.Text != want.Text || got.ID == "" {
			t.Errorf("%s: got %+v, want %+v", recorded, got, want)
		}
	}
}

func TestClaudeUsage(t *testing.T) {
	t.Parallel()
	r := newReplay(t, "headless-shell-host.stream.jsonl")
	for len(r.lines) > 0 {
		r.do("line")
	}
	want := agency.Usage{InputTokens: new(int64(200)), CachedTokens: new(int64(0)), OutputTokens: new(int64(41)), CostUSD: new(0.00162)}
	want.Models = []agency.ModelUsage{{Model: "claude-opus-5-5", Input: 200, Output: 41}}
	if diff := cmp.Diff(want, r.agentState.Usage); diff != "" {
		t.Errorf("without a terminal (-want +got):\n%s", diff)
	}
	r = newReplay(t, "exit-slash.hooks.jsonl")
	r.do("hook")
	r.do("says " + answerLine + "\n" + answerLine) // two parts of one answer
	r.do("says " + answerLine)
	r.do("says " + strings.ReplaceAll(answerLine, "msg_1", "msg_2"))
	want = agency.Usage{InputTokens: new(int64(300)), CachedTokens: new(int64(100)), OutputTokens: new(int64(14)), Estimated: true}
	want.Models = []agency.ModelUsage{{Input: 200, CacheRead: 100, Output: 14}}
	if diff := cmp.Diff(want, r.agentState.Usage); diff != "" {
		t.Errorf("from the transcript (-want +got):\n%s", diff)
	}
}

// The part of a conversation before it was resumed is not read again.
func TestClaudeResumesAConversation(t *testing.T) {
	t.Parallel()
	r := newReplay(t, "exit-slash.hooks.jsonl")
	var start struct {
		Transcript string `json:"transcript_path"`
	}
	if err := json.Unmarshal([]byte(r.lines[0]), &start); err != nil {
		t.Fatal(err)
	}
	r.transcript = answerLine + "\n" + interrupted + "\n"
	if err := os.MkdirAll(filepath.Dir(start.Transcript), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(start.Transcript, []byte(r.transcript), 0o600); err != nil {
		t.Fatal(err)
	}
	r.do("hook")
	r.do("says " + modeLine)
	if r.agentState.Usage.InputTokens != nil || r.agentState.Interrupted {
		t.Errorf("an old answer counts: %+v", r.agentState)
	}
}

// Work in the background keeps a run at work after its turn ended, and subagents neither begin nor
// end the turn.
func TestClaudeBackground(t *testing.T) {
	t.Parallel()
	r := newReplay(t, "exit-slash.hooks.jsonl")
	r.do("hook")
	r.do("hook")
	for _, payload := range []string{
		`{"hook_event_name":"PreToolUse","agent_id":"a1","tool_name":"Bash","tool_input":{"command":"ls"}}`,
		`{"hook_event_name":"Stop","agent_id":"a1","background_tasks":[]}`,
		`{"hook_event_name":"SubagentStop","agent_id":"a1"}`,
		backgrounded,
		`{"hook_event_name":"Notification","notification_type":"idle_prompt"}`,
	} {
		r.observe(harness.Hook("claude_code", []byte(payload)))
		if got := r.status().Label; got != agency.Working {
			t.Errorf("after %s: got %s, want working", payload, got)
		}
	}
	r.do("status idle")
	if got := r.status().Label; got != agency.Working {
		t.Errorf("at rest with work behind it: got %s, want working", got)
	}
	r.do("hook")
	if got := r.status().Label; got != agency.Waiting {
		t.Errorf("when that ended: got %s, want waiting", got)
	}
}

func TestClaudeFilesLeadNowhereElse(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"", "projects/x/a.jsonl", "/etc/passwd", "/home/dev/.claude/projects/x/a.json", "/a.jsonl"} {
		if got := harness.Files("claude_code", &agency.AgentState{Transcript: path}, claudeProcess); got != nil {
			t.Errorf("%q leads to %q", path, got)
		}
	}
	got := harness.Files("claude_code", &agency.AgentState{Transcript: "/c/projects/x/a.jsonl"}, claudeProcess)
	if want := []string{"/c/projects/x/a.jsonl", "/c/sessions/7.json"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestClaudeScreen(t *testing.T) {
	t.Parallel()
	shown := func(name string) []string {
		data, err := os.ReadFile(filepath.Join("testdata", name+".screen.txt"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(string(data), "\n")
	}
	for name, want := range map[string]string{
		"trust": "asked dialog", "trust-2.1.197": "asked dialog", "settings": "asked dialog", "key": "asked dialog",
		"permission": "asked permission", "permission-2.1.197": "asked permission", "permission-write": "asked permission",
		"question": "asked question", "working": "busy ", "resting": "resting ",
	} {
		got := harness.Screen("claude_code", shown(name))
		if len(got) != 1 || fmt.Sprintf("%s %s", got[0].Signal, got[0].Kind) != want || got[0].Confidence <= 0 || got[0].Confidence >= 1 {
			t.Errorf("%s: got %+v, want %s", name, got, want)
		}
	}
	box := shown("resting")[len(shown("resting"))-7:]
	for _, name := range []string{"trust", "settings", "key", "permission", "question"} {
		quoted := slices.Concat(shown(name), []string{"Select login method:", "Choose the text style that looks best with your terminal"}, box)
		if got := harness.Screen("claude_code", quoted); len(got) != 1 || got[0].Signal != agency.SignalResting {
			t.Errorf("an agent that quotes %s: got %+v, want resting", name, got)
		}
	}
	if got := harness.Screen("claude_code", nil); got != nil {
		t.Errorf("an empty screen: got %+v", got)
	}
}

func FuzzClaude(f *testing.F) {
	for _, pattern := range []string{"*.hooks.jsonl", "*.stream.jsonl"} {
		paths, err := filepath.Glob(filepath.Join("testdata", pattern))
		if err != nil || len(paths) == 0 {
			f.Fatal(err, pattern)
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			for line := range strings.Lines(string(data)) {
				f.Add([]byte(line))
			}
		}
	}
	f.Add([]byte(interrupted + "\n" + callLine + "\n" + callLine + "\n" + answerLine + "\n"))
	dir := filepath.Join(f.TempDir(), "projects", "x")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var s agency.AgentState
		harness.Title("claude_code", string(data))
		harness.Screen("claude_code", strings.Split(string(data), "\n"))
		for _, e := range slices.Concat(harness.Hook("claude_code", data), harness.Stream("claude_code", data)) {
			status.Observe(&s, e)
		}
		for _, ext := range []string{".json", ".jsonl"} {
			path := filepath.Join(dir, "a"+ext)
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			s := agency.AgentState{Transcript: path, Turn: agency.TurnWorking}
			for _, e := range harness.ReadFile("claude_code", path, &s) {
				status.Observe(&s, e)
			}
			if s.TranscriptOffset > int64(len(data)) {
				t.Errorf("read to %d of %d", s.TranscriptOffset, len(data))
			}
		}
	})
}
