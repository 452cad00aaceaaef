package codex

import (
	"encoding/json"
	"slices"
	"strings"

	"agency"
	"agency/internal/harness/jsonrpc"
	"agency/internal/protocol"
)

// threadSettings are the settings of a conversation. The sandbox has one name in the reply that begins a
// conversation, and another in the notification of a change.
type threadSettings struct {
	Model    string          `json:"model"`
	Approval json.RawMessage `json:"approvalPolicy"`
	Sandbox  sandbox         `json:"sandbox"`
	Policy   sandbox         `json:"sandboxPolicy"`
}

type sandbox struct {
	Type string `json:"type"`
}

// The sandboxes and the approval policies, by the names of Codex's options -s and -a.
var (
	sandboxes = []struct{ name, policy string }{
		{"read-only", "readOnly"}, {"workspace-write", "workspaceWrite"}, {"danger-full-access", "dangerFullAccess"},
	}
	approvals = []string{"untrusted", "on-request", "never"}
)

// permissionModes are a sandbox and an approval policy each.
func permissionModes() []string {
	var all []string
	for _, s := range sandboxes {
		for _, a := range approvals {
			all = append(all, s.name+"/"+a)
		}
	}
	return all
}

// now returns the settings as agency has them.
func (s *threadSettings) now() agency.Settings {
	kind, approval := s.Sandbox.Type+s.Policy.Type, ""
	if json.Unmarshal(s.Approval, &approval) != nil {
		approval = "granular" // a policy for each kind of request
	}
	for _, known := range sandboxes {
		if known.policy == kind {
			kind = known.name
		}
	}
	if kind == "" || len(s.Approval) == 0 {
		return agency.Settings{Model: s.Model}
	}
	return agency.Settings{Model: s.Model, PermissionMode: kind + "/" + approval}
}

// saySetting changes a setting from the next turn on.
func saySetting(at protocol.Place, id string, setting agency.Setting, value string) ([]byte, error) {
	params := map[string]any{"threadId": at.Conversation}
	if setting == agency.SettingModel {
		params["model"] = value
	} else {
		name, approval, _ := strings.Cut(value, "/")
		i := slices.IndexFunc(sandboxes, func(s struct{ name, policy string }) bool { return s.name == name })
		if i < 0 || !slices.Contains(approvals, approval) {
			return nil, agency.Errorf(agency.CodeUsage, "%q is not a sandbox and an approval policy of Codex", value).
				WithHint("one of %s", strings.Join(permissionModes(), ", "))
		}
		params["sandboxPolicy"], params["approvalPolicy"] = map[string]any{"type": sandboxes[i].policy}, approval
	}
	return jsonrpc.Encode(map[string]any{"id": id, "method": "thread/settings/update", "params": params}), nil
}
