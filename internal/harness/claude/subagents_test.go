package claude_test

import (
	"testing"

	"agency"
	"agency/internal/harness"
)

// A recorded session: subagent one asks for permission while the agent's turn ends, and subagent
// two ends; its end arrives as a prompt. The request stays open until its dialog is answered.
func TestClaudeSubagentAsks(t *testing.T) {
	t.Parallel()
	r := newReplay(t, "helpers.hooks.jsonl")
	for i, step := range []struct {
		do   string
		want agency.Label
	}{
		{"hook", agency.Active},
		{"hook", agency.Working},
		{"status busy", agency.Working},
		{"hook", agency.Working},
		{"hook", agency.Working},
		{"hook", agency.Working},
		{"hook", agency.Working},
		{"hook", agency.Working},
		{"hook", agency.NeedsInput}, // PermissionRequest of one
		{"status waiting permission prompt", agency.NeedsInput},
		{"hook", agency.NeedsInput}, // Stop, with work in the background
		{"hook", agency.NeedsInput}, // SubagentStop of two
		{"hook", agency.NeedsInput}, // UserPromptSubmit with that end
		{"hook", agency.NeedsInput}, // Stop
		{"status busy", agency.Working},
		{"hook", agency.Working},
		{"hook", agency.Working},
		{"hook", agency.Working},
		{"hook", agency.Waiting},
	} {
		r.do(step.do)
		if got := r.status(); got.Label != step.want {
			t.Fatalf("step %d, %s: got %s (%s), want %s", i, step.do, got.Label, got.Summary, step.want)
		}
	}
}

// Evidence without a word about a request leaves it open.
func TestClaudeRequestStays(t *testing.T) {
	t.Parallel()
	for name, payload := range map[string]string{
		"a prompt":                    `{"hook_event_name":"UserPromptSubmit","prompt":"go on"}`,
		"news of a helper":            `{"hook_event_name":"UserPromptSubmit","prompt":"<task-notification>\n<task-id>a2</task-id>"}`,
		"a conversation cut short":    `{"hook_event_name":"PreCompact"}`,
		"a minute without a prompt":   `{"hook_event_name":"Notification","notification_type":"idle_prompt"}`,
		"the end of the agent's turn": `{"hook_event_name":"Stop","background_tasks":[]}`,
		"its failure":                 `{"hook_event_name":"StopFailure","error":"rate_limit"}`,
		"the end of another helper":   `{"hook_event_name":"SubagentStop","agent_id":"a2"}`,
		"the end of another call":     `{"hook_event_name":"PostToolUse","agent_id":"a1","tool_name":"Bash","tool_input":{"command":"ls"}}`,
	} {
		r := newReplay(t, "exit-slash.hooks.jsonl")
		r.do("hook")
		r.do("hook")
		r.observe(harness.Hook("claude_code", []byte(`{"hook_event_name":"PermissionRequest","agent_id":"a1","tool_name":"Bash","tool_input":{"command":"make"}}`)))
		r.do("late idle") // it was at rest before, and will report that it waits
		r.observe(harness.Hook("claude_code", []byte(payload)))
		if got := r.status(); got.Label != agency.NeedsInput || got.Request.Text != "make" {
			t.Errorf("after %s: got %s (%s)", name, got.Label, got.Summary)
		}
	}
}

// The end of a subagent does not answer a question of the agent in plain text.
func TestClaudeSubagentEndAnswersNothing(t *testing.T) {
	t.Parallel()
	r := newReplay(t, "exit-slash.hooks.jsonl")
	r.do("hook")
	r.observe([]agency.Evidence{{Source: agency.FromReport, Signal: agency.SignalReport, Report: agency.ReportsHelp, Text: "Which colour?"}})
	r.observe(harness.Hook("claude_code", []byte(`{"hook_event_name":"UserPromptSubmit","prompt":"<task-notification>"}`)))
	if got := r.status(); got.Label != agency.NeedsInput || got.Summary != "Which colour?" {
		t.Errorf("got %s (%s)", got.Label, got.Summary)
	}
}
