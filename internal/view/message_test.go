package view_test

import (
	"encoding/json"
	"testing"

	"agency"
	"agency/internal/view"
)

// A message is shown by its text, from any sender; one without the usual fields is shown as it is.
func TestMessageText(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ from, kind, payload, want string }{
		{"user", "message", `{"text": "stop at five"}`, "stop at five"},
		{"r_1", "status.update", `{"attempt": 1, "report": "word", "run_id": "r_1", "text": "A fork"}`, "A fork"},
		{"r_1", "plan.changed", `{"status": "needs_input", "summary": "A fork", "questions": ["Left?", 7, "Right?"]}`, "needs input\nA fork\n- Left?\n- Right?"},
		{"r_1", "odd", `{"text": 5, "status": null}`, `{"text": 5, "status": null}`},
		{"agency", "worker.error", `{"worker_name": "fix-login", "error_context": "exit 1"}`, "fix-login failed: exit 1"},
		{"agency", "worker.complete", `{"worker_name": "fix-login"}`, "fix-login is done"},
		{"r_1", "worker.error", `{"worker_name": "fix-login", "error_context": "exit 1"}`, `{"worker_name": "fix-login", "error_context": "exit 1"}`},
	} {
		m := &agency.Message{From: tt.from, Type: tt.kind, Payload: json.RawMessage(tt.payload)}
		if got := view.MessageText(m); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.payload, got, tt.want)
		}
	}
}
