package harness_test

import (
	"testing"

	"agency"
	"agency/internal/harness"
)

func TestConversation(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kind         agency.RunnerKind
		stream, want string
	}{
		{agency.Codex, "Reading additional input from stdin...\n{\"type\":\"thread.started\",\"thread_id\":\"01a1-9e\"}\n", "01a1-9e"},
		{agency.Codex, "{\"type\":\"item.completed\",\"thread_id\":\"other\"}\n", ""},
		{agency.Codex, "{\"type\":\"thread.started\",\"thread_id\":\"--dangerous\"}\n", ""},
		{agency.OpenCode, "{\"type\":\"step_start\",\"sessionID\":\"ses_e04f\"}\n{\"type\":", "ses_e04f"},
		{agency.ClaudeCode, "{\"type\":\"thread.started\",\"thread_id\":\"x1\"}\n", ""},
		{agency.Codex, "", ""},
	} {
		if got := harness.Conversation(tt.kind, []byte(tt.stream)); got != tt.want {
			t.Errorf("%s %q: got %q, want %q", tt.kind, tt.stream, got, tt.want)
		}
	}
}
