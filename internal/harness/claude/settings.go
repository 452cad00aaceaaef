package claude

import (
	"encoding/json"
	"path/filepath"
	"strings"

	"agency"
	"agency/internal/file"
	"agency/internal/harness/agent"
)

// settingsFile is the name of a run's settings in the attempt's directory.
const settingsFile = "claude-settings.json"

// settingsLimit is the most that is read of a user's settings, in bytes.
const settingsLimit = 1 << 20

// events returns the hooks to register: few, and old ones, because a name that a version does not
// know stops its start at a dialog. Without a terminal the stream reports tools, and no user can
// give permission.
func events(headless bool) []string {
	events := []string{"SessionStart", "UserPromptSubmit", "Notification", "Stop", "StopFailure", "SubagentStop", "PreCompact", "SessionEnd"}
	if !headless {
		events = append(events, "PreToolUse", "PermissionRequest", "PostToolUse", "PostToolUseFailure")
	}
	return events
}

// withHooks returns the user's settings, which are JSON or the name of a file or empty, with the
// hooks that report to agency added to those that are there. It is false when there is nothing to
// add, or when the user's settings cannot be read: Claude Code itself reports what is wrong with
// them.
func withHooks(users string, r agency.CommandRequest) (merged []byte, ok bool) {
	if len(r.Hook) == 0 {
		return nil, false
	}
	settings := map[string]json.RawMessage{}
	hooks := map[string][]json.RawMessage{}
	if users != "" {
		text, err := readClaudeSettings(users, r.Worktree)
		if err != nil || json.Unmarshal(text, &settings) != nil || settings == nil {
			return nil, false
		}
		if has := settings["hooks"]; has != nil && json.Unmarshal(has, &hooks) != nil {
			return nil, false
		}
	}
	if hooks == nil {
		hooks = map[string][]json.RawMessage{}
	}
	call, err := json.Marshal(map[string]any{"hooks": []any{map[string]any{
		"type": "command", "command": agent.HookCommand(r), "timeout": 5,
	}}})
	if err != nil {
		return nil, false
	}
	for _, event := range events(r.Headless) {
		hooks[event] = append(hooks[event], call)
	}
	if settings["hooks"], err = json.Marshal(hooks); err != nil {
		return nil, false
	}
	merged, err = json.MarshalIndent(settings, "", "  ")
	return append(merged, '\n'), err == nil
}

func readClaudeSettings(users, dir string) ([]byte, error) {
	if strings.HasPrefix(strings.TrimSpace(users), "{") {
		return []byte(users), nil
	}
	if !filepath.IsAbs(users) {
		users = filepath.Join(dir, users)
	}
	path, err := filepath.EvalSymlinks(users) // it is the user's own, and may be a link
	if err != nil {
		return nil, err
	}
	return file.ReadRegular(path, settingsLimit)
}
