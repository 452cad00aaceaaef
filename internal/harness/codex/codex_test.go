package codex_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/harness"
	"agency/internal/harness/harnesstest"
)

// These are the events of Codex 0.169 in its terminal, in order: hooks, title and rollout.
func TestCodexInItsTerminal(t *testing.T) {
	t.Parallel()
	const (
		input   = agency.NeedsInput
		working = agency.Working
		waiting = agency.Waiting
	)
	tests := []struct {
		name    string
		labels  []agency.Label
		summary string
	}{
		{"text", []agency.Label{working, waiting}, "(its turn ended)"},
		{"write", []agency.Label{working, waiting}, "(its turn ended)"},
		{"perm-allow", []agency.Label{working, input, working, waiting}, "(its turn ended)"},
		{"perm-esc", []agency.Label{working, input, waiting}, "(interrupted)"},
		{"ask-plan", []agency.Label{working, input, working, waiting}, "(its turn ended)"},
		{"esc-stream", []agency.Label{working, waiting}, "(interrupted)"},
		{"err-401", []agency.Label{working, waiting}, "(auth: unexpected status 401"},
		{"exit-slash", []agency.Label{working, waiting}, "(its turn ended)"},
		{"exit-sigkill", []agency.Label{working}, ""}, // the wrapper reports its exit
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := replay(t, "testdata/"+tt.name+".jsonl")
			if diff := cmp.Diff(tt.labels, f.Labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			if !strings.HasPrefix(f.Status.Summary, tt.summary) {
				t.Errorf("got summary %q, want %q", f.Status.Summary, tt.summary)
			}
			s := &f.AgentState
			if s.Conversation == "" || s.Model != "gpt-5.5" || len(s.Unknown) > 0 || len(s.Requests) > 0 {
				t.Errorf("conversation %q, model %q, unknown %v, requests %v", s.Conversation, s.Model, s.Unknown, s.Requests)
			}
		})
	}
}

// replay folds a recording of Codex in its terminal: hooks, titles and the lines of its rollout.
func replay(t *testing.T, recording string) (f harnesstest.Folded) {
	t.Helper()
	rollout := filepath.Join(t.TempDir(), "rollout-1.jsonl")
	begun := time.Now()
	for _, line := range harnesstest.Lines(t, recording) {
		var seen struct {
			Ms      int             `json:"ms"`
			Hook    json.RawMessage `json:"hook"`
			Title   *string         `json:"title"`
			Rollout json.RawMessage `json:"rollout"`
		}
		if err := json.Unmarshal(line, &seen); err != nil {
			t.Fatal(err)
		}
		at := begun.Add(time.Duration(seen.Ms) * time.Millisecond)
		switch {
		case seen.Hook != nil:
			evidence := harness.Hook("codex", seen.Hook)
			for i := range evidence {
				if evidence[i].Transcript != "" {
					evidence[i].Transcript = rollout
				}
			}
			f.Fold(evidence, at)
		case seen.Title != nil:
			f.Fold(harness.Title("codex", *seen.Title), at)
		case seen.Rollout != nil:
			harnesstest.AppendTo(t, rollout, string(seen.Rollout)+"\n")
		}
		for _, path := range harness.Files("codex", &f.AgentState, nil) {
			f.Fold(harness.ReadFile("codex", path, &f.AgentState), at)
		}
	}
	return f
}

// A request of Codex contains the command or the question, and its answer has the same id.
func TestCodexRequests(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]agency.Request{
		"perm-allow": {Kind: agency.AsksPermission, Tool: "Bash", Text: "mkdir -p made-by-stub && date > made-by-stub/stamp.txt"},
		"ask-plan":   {Kind: agency.AsksQuestion, Tool: "request_user_input", Text: "Which colour should the stub use?"},
	} {
		var f harnesstest.Folded
		var asked agency.Request
		for _, line := range harnesstest.Lines(t, "testdata/"+name+".jsonl") {
			var seen struct {
				Hook json.RawMessage `json:"hook"`
			}
			if err := json.Unmarshal(line, &seen); err != nil || seen.Hook == nil {
				continue
			}
			f.Fold(harness.Hook("codex", seen.Hook), time.Now())
			if len(f.AgentState.Requests) > 0 {
				asked = f.AgentState.Requests[0]
			} else if asked.ID != "" {
				break // answered before the turn ended
			}
		}
		if asked.Kind != want.Kind || asked.Tool != want.Tool || asked.Text != want.Text || f.AgentState.Turn != agency.TurnWorking {
			t.Errorf("%s: got %+v, turn %s", name, asked, f.AgentState.Turn)
		}
	}
}

// A subagent of Codex does not end its turn, and an event of a later version is counted.
func TestCodexHooksOfOthers(t *testing.T) {
	t.Parallel()
	var f harnesstest.Folded
	for _, payload := range []string{
		`{"hook_event_name":"UserPromptSubmit","session_id":"01a1","transcript_path":null,"model":"m"}`,
		`{"hook_event_name":"SubagentStart","session_id":"01a1","agent_id":"helper"}`,
		`{"hook_event_name":"PermissionRequest","session_id":"01a1","agent_id":"helper","tool_name":"Bash","tool_input":{"command":"ls"}}`,
		`{"hook_event_name":"SubagentStop","session_id":"01a1","agent_id":"helper","last_assistant_message":"done"}`,
		`{"hook_event_name":"MindRead","session_id":"01a1"}`,
		`{"hook_event_name":"PreToolUse","tool_name":"later","tool_input":"a text"}`,
		`nothing`,
	} {
		f.Fold(harness.Hook("codex", []byte(payload)), time.Now())
	}
	want := map[string]int{"MindRead": 1, "unreadable hook": 1}
	if diff := cmp.Diff(want, f.AgentState.Unknown); diff != "" {
		t.Errorf("unknown (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]agency.Label{agency.Working, agency.NeedsInput, agency.Working}, f.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}

// This is the output of codex exec --json: warnings are not errors, and every failed try is
// reported before the end of the turn.
func TestCodexStream(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		retry   agency.ErrorClass // the error reported on the way
		failure agency.ErrorClass
		input   int64
	}{
		{"exec-shell", "", "", 200},
		{"exec-write", "", "", 200},
		{"exec-resume-after-kill9", "", "", 300}, // the whole conversation, not the last attempt
		{"exec-err-auth401", agency.ErrorAuth, agency.ErrorAuth, 0},
		{"exec-err-rate429", agency.ErrorRateLimit, agency.ErrorRateLimit, 0},
		{"exec-err-overloaded", agency.ErrorOverloaded, agency.ErrorOverloaded, 0},
		{"exec-err-cut", agency.ErrorNetwork, agency.ErrorNetwork, 0},
		{"exec-err-bad400", agency.ErrorContext, agency.ErrorContext, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var f harnesstest.Folded
			var retry agency.ErrorClass
			for _, line := range harnesstest.Lines(t, "testdata/"+tt.name+".stream.jsonl") {
				f.Fold(harness.Stream("codex", line), time.Now())
				if r := f.AgentState.Retry; r != nil {
					retry = r.Class
				}
			}
			var failure agency.ErrorClass
			if f.AgentState.Failure != nil {
				failure = f.AgentState.Failure.Class
			}
			if retry != tt.retry || failure != tt.failure {
				t.Errorf("got retry %q, failure %q, want %q, %q", retry, failure, tt.retry, tt.failure)
			}
			if diff := cmp.Diff([]agency.Label{agency.Working, agency.Waiting}, f.Labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			switch u := f.AgentState.Usage; {
			case tt.input == 0 && u.InputTokens != nil, tt.input != 0 && (u.InputTokens == nil || *u.InputTokens != tt.input), u.CostUSD != nil:
				t.Errorf("got usage %+v, want %d", u, tt.input)
			}
			if s := &f.AgentState; len(s.Unknown) > 0 || len(s.Tools) > 0 || s.Conversation == "" {
				t.Errorf("unknown %v, tools %v, conversation %q", s.Unknown, s.Tools, s.Conversation)
			}
		})
	}
}

func TestCodexTitle(t *testing.T) {
	t.Parallel()
	for title, want := range map[string]agency.Signal{
		"Ready | work":                          agency.SignalResting,
		"⠋ Working | work":                      agency.SignalBusy,
		"Working | work":                        agency.SignalBusy, // with animations off
		"⠼ stub answer | work":                  agency.SignalBusy, // with the user's own title
		"⠋ Starting | work":                     "",
		"[ ! ] Action Required | work":          agency.SignalAsked,
		"[ . ] Action Required | stub answer |": agency.SignalAsked,
		"stub answer | Ready":                   "",
		"work":                                  "",
		"":                                      "",
		"\u2800":                                "",
	} {
		got := harness.Title("codex", title)
		switch {
		case want == "" && len(got) > 0, want != "" && (len(got) != 1 || got[0].Signal != want || got[0].Source != agency.FromTitle):
			t.Errorf("%q: got %+v, want %q", title, got, want)
		}
	}
	if !slices.Equal(harness.Title("codex", "⠋ Working | work"), harness.Title("codex", "⠙ Thinking | work")) {
		t.Error("a turn of the wheel is news")
	}
}

// Work in the title answers a request of a hook, but only if the title showed it after the request.
func TestCodexTitleAnswers(t *testing.T) {
	t.Parallel()
	var f harnesstest.Folded
	at := time.Now()
	for _, title := range []string{"⠋ Working | work", "hook", "⠙ Working | work", "[ ! ] Action Required | work"} {
		at = at.Add(time.Millisecond)
		if title == "hook" {
			f.Fold(harness.Hook("codex", []byte(`{"hook_event_name":"PermissionRequest","tool_name":"Bash","tool_input":{"command":"ls"}}`)), at)
			continue
		}
		f.Fold(harness.Title("codex", title), at)
	}
	if f.Status.Label != agency.NeedsInput || f.Status.Request.Text != "ls" {
		t.Fatalf("got %+v", f.Status)
	}
	f.Fold(harness.Title("codex", "⠙ Working | work"), at.Add(time.Millisecond))
	if f.Status.Label != agency.Working {
		t.Errorf("got %+v after the answer", f.Status)
	}
}

func TestCodexScreen(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"trust": "trust", "hooks": "hooks", "model": "model", "login": "login", "permission": "permission", "write": "permission", "question": "question",
		"resting": "input", "prompt": "input",
	} {
		shown := harnesstest.Screen(t, "testdata/"+name)
		got := ""
		for _, e := range harness.Screen("codex", shown) {
			got += e.Event
			if asks := want != "input"; asks != (e.Signal == agency.SignalAsked) || e.Confidence <= 0 || e.Confidence >= 1 || asks != (e.Text != "") {
				t.Errorf("%s: got %+v", name, e)
			}
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
		// The same text, quoted by the agent above its composer.
		quoted := append(slices.Clone(shown), "", "› Ask Codex to do anything", "", "  GPT-5.5 default · /tmp/work", "  ← for agents · ? for shortcuts")
		if got := harness.Screen("codex", quoted); len(got) != 1 || got[0].Signal != agency.SignalSession {
			t.Errorf("%s quoted: got %+v", name, got)
		}
	}
}

func TestCodexRollout(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "rollout-2026-01-01T00-00-00-01a1.jsonl")
	harnesstest.AppendTo(t, path, `{"type":"event_msg","payload":{"type":"task_complete","error":{"message":"of an earlier attempt"}}}`+"\n")
	var f harnesstest.Folded
	session, err := json.Marshal(map[string]any{"hook_event_name": "SessionStart", "session_id": "01a1", "transcript_path": path, "model": "m"})
	if err != nil {
		t.Fatal(err)
	}
	f.Fold(harness.Hook("codex", session), time.Now())
	read := func() agency.AgentState {
		t.Helper()
		for _, path := range harness.Files("codex", &f.AgentState, nil) {
			f.Fold(harness.ReadFile("codex", path, &f.AgentState), time.Now())
		}
		return f.AgentState
	}
	if s := read(); s.Failure != nil {
		t.Errorf("an earlier attempt's failure was read: %+v", s.Failure)
	}
	usage := `{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":7,"output_tokens":3}}}}`
	harnesstest.AppendTo(t, path, usage[:50])
	if s := read(); s.Usage.InputTokens != nil {
		t.Errorf("half a line was read: %+v", s.Usage)
	}
	harnesstest.AppendTo(t, path, usage[50:]+"\n")
	if s := read(); s.Usage.InputTokens == nil || *s.Usage.InputTokens != 7 || s.Usage.CachedTokens != nil {
		t.Errorf("got %+v", s.Usage)
	}
	harnesstest.AppendTo(t, path, `{"type":"response_item","payload":{"image":"`+strings.Repeat("x", 9<<20)+`"}}`+"\nnothing\n"+
		`{"type":"event_msg","payload":{"type":"task_complete","error":{"message":"no","codex_error_info":"usage_limit_exceeded"}}}`+"\n")
	if s := read(); s.Failure == nil || s.Failure.Class != agency.ErrorRateLimit {
		t.Errorf("got %+v behind a long line", s.Failure)
	}
	harnesstest.AppendTo(t, path, `{"type":"response_item","payload":{}}`+"\n")
	info, err := os.Stat(path)
	if s := read(); err != nil || s.TranscriptOffset != info.Size() {
		t.Errorf("read %d of %d, %v", s.TranscriptOffset, info.Size(), err)
	}
	if got := harness.ReadFile("codex", path, &f.AgentState); len(got) > 0 {
		t.Errorf("read again: %+v", got)
	}
}

func TestCodexRolloutIsNoOtherFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fifo, link := filepath.Join(dir, "rollout-1.jsonl"), filepath.Join(dir, "rollout-2.jsonl")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{fifo, link, filepath.Join(dir, "rollout-3.jsonl")} {
		s := &agency.AgentState{Transcript: path}
		if got := harness.ReadFile("codex", path, s); len(harness.Files("codex", s, nil)) != 1 || len(got) > 0 {
			t.Errorf("%s: got %+v", path, got)
		}
	}
	for _, path := range []string{"", "rollout-1.jsonl", "/etc/passwd", "/etc/rollout-1.txt"} {
		if got := harness.Files("codex", &agency.AgentState{Transcript: path}, nil); len(got) > 0 {
			t.Errorf("%q is followed: %v", path, got)
		}
	}
}

func FuzzCodex(f *testing.F) {
	for _, name := range []string{"perm-allow.jsonl", "ask-plan.jsonl", "exec-write.stream.jsonl", "exec-err-rate429.stream.jsonl"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		for line := range bytes.Lines(data) {
			f.Add(line)
		}
	}
	path := filepath.Join(f.TempDir(), "rollout-1.jsonl")
	f.Fuzz(func(t *testing.T, data []byte) {
		var all harnesstest.Folded
		all.Fold(harness.Hook("codex", data), time.Now())
		all.Fold(harness.Stream("codex", data), time.Now())
		all.Fold(harness.Title("codex", string(data)), time.Now())
		all.Fold(harness.Screen("codex", strings.Split(string(data), "\n")), time.Now())
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		all.Fold(harness.ReadFile("codex", path, &agency.AgentState{Transcript: path}), time.Now())
	})
}
