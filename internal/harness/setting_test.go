package harness_test

import (
	"strings"
	"testing"

	"agency"
	"agency/internal/harness"
	"agency/internal/protocol"
)

// What each agent says of its settings, as it said it, and how it is told to change them.
func TestSettings(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		kind        agency.RunnerKind
		says        string
		model, mode string
		offers      string // among others
		value, want string // of a permission mode, and in its frame
	}{
		{"claude_code", `{"type":"system","subtype":"status","status":null,"permissionMode":"plan"}`, "", "plan", "", "acceptEdits", `"mode":"acceptEdits"`},
		{"claude_code", `{"type":"control_response","response":{"subtype":"success","request_id":"agency-hello","response":{"models":[{"value":"opus"}],"current_permission_mode":"default"}}}`, "", "default", "opus acceptEdits", "plan", `"set_permission_mode"`},
		{"codex", `{"id":"agency-hello","result":{"thread":{"id":"t"},"model":"gpt-6-sol","approvalPolicy":"never","sandbox":{"type":"dangerFullAccess"}}}`, "gpt-6-sol", "danger-full-access/never", "", "read-only/never", `"sandboxPolicy":{"type":"readOnly"}`},
		{"codex", `{"method":"thread/settings/updated","params":{"threadId":"t","threadSettings":{"model":"gpt-6-luna","approvalPolicy":{"granular":{}},"sandboxPolicy":{"type":"workspaceWrite"}}}}`, "gpt-6-luna", "workspace-write/granular", "", "workspace-write/on-request", `"approvalPolicy":"on-request"`},
		{"codex", `{"id":"agency-hello-models","result":{"data":[{"model":"gpt-6-sol"},{"model":"gpt-6-luna"}]}}`, "", "", "gpt-6-luna read-only/untrusted", "untrusted", ""},
	} {
		dialect := harness.Dialect(test.kind, "")
		var got agency.Settings
		for _, e := range dialect.Read([]byte(test.says)) {
			if e.Kind == protocol.Session {
				got = e.Settings
			}
		}
		if got.Model != test.model || got.PermissionMode != test.mode {
			t.Errorf("%s: got %+v of %s", test.kind, got, test.says)
		}
		for name := range strings.FieldsSeq(test.offers) {
			if !strings.Contains(strings.Join(append(got.Models, got.PermissionModes...), " "), name) {
				t.Errorf("%s: %s is not offered in %+v", test.kind, name, got)
			}
		}
		frame, err := dialect.Set(protocol.Place{Conversation: "t"}, "i", agency.SettingPermissionMode, test.value)
		if (err != nil) != (test.want == "") || !strings.Contains(string(frame), test.want) {
			t.Errorf("%s: %s gives %s, %v", test.kind, test.value, frame, err)
		}
	}
}
