package codex

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"agency"
	"agency/internal/harness/agent"
)

// event is one event for which Codex calls hooks: its name, and the name in the key of its trust.
type event struct{ name, key string }

// events are the events that matter for a run. A version that does not know one of them skips it.
func events(headless bool) []event {
	events := []event{{"SessionStart", "session_start"}, {"Stop", "stop"}}
	if headless {
		return events // its stream reports the rest
	}
	return append(events,
		event{"UserPromptSubmit", "user_prompt_submit"},
		event{"PreToolUse", "pre_tool_use"},
		event{"PermissionRequest", "permission_request"},
		event{"PostToolUse", "post_tool_use"},
		event{"SubagentStart", "subagent_start"},
		event{"SubagentStop", "subagent_stop"},
		event{"Interrupt", "interrupt"},
		event{"SessionEnd", "session_end"},
	)
}

// hookTimeout is in seconds; Codex allows no more for some events, and warns about a longer one.
const hookTimeout = 3

// hooks returns the settings with which Codex calls agency's hook. Codex runs only hooks that the
// user has reviewed, identified by their place and by a hash of their content. The review of these
// is part of the same settings, so that they run without a dialog; any other hook still needs its
// own review.
func hooks(r agency.CommandRequest) []string {
	command := agent.HookCommand(r)
	if command == "" {
		return nil
	}
	var args, reviewed []string
	for _, event := range events(r.Headless) {
		args = append(args, "-c", fmt.Sprintf(`hooks.%s=[{hooks=[{type="command",command=%s,timeout=%d}]}]`,
			event.name, tomlString(command), hookTimeout))
		reviewed = append(reviewed, fmt.Sprintf(`%s={trusted_hash=%s}`,
			tomlString("/<session-flags>/config.toml:"+event.key+":0:0"), tomlString(hookHash(event, command))))
	}
	return append(args, "-c", "hooks.state={"+strings.Join(reviewed, ",")+"}")
}

// hookHash returns the hash by which Codex recognises a hook: that of its JSON without spaces, with
// sorted keys and the least escaping.
func hookHash(event event, command string) string {
	type handler struct {
		Async   bool   `json:"async"`
		Command string `json:"command"`
		Timeout int    `json:"timeout"`
		Type    string `json:"type"`
	}
	var identity strings.Builder
	enc := json.NewEncoder(&identity)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(struct { // encoding strings and numbers never fails
		Event string    `json:"event_name"`
		Hooks []handler `json:"hooks"`
	}{event.key, []handler{{Command: command, Timeout: hookTimeout, Type: "command"}}})
	sum := sha256.Sum256([]byte(strings.TrimSuffix(identity.String(), "\n")))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// hook reads the input of a hook of Codex.
func hook(payload []byte) []agency.Evidence {
	var in struct {
		Event      string                     `json:"hook_event_name"`
		Session    string                     `json:"session_id"`
		Transcript string                     `json:"transcript_path"`
		Model      string                     `json:"model"`
		Tool       string                     `json:"tool_name"`
		Input      map[string]json.RawMessage `json:"tool_input"`
		Last       string                     `json:"last_assistant_message"`
		Agent      string                     `json:"agent_id"`
	}
	if !agent.Lenient(payload, &in) || in.Event == "" {
		return []agency.Evidence{{Signal: agency.SignalUnknown, Event: "unreadable hook"}}
	}
	e := agency.Evidence{Event: in.Event, Subagent: in.Agent}
	session := agency.Evidence{
		Event: in.Event, Subagent: in.Agent, Signal: agency.SignalSession,
		Conversation: in.Session, Transcript: in.Transcript, Model: in.Model,
	}
	switch in.Event {
	case "SessionStart":
		session.Offset = agent.SizeOf(in.Transcript)
		return []agency.Evidence{session}
	case "UserPromptSubmit":
		session.Offset = agent.SizeOf(in.Transcript)
		e.Signal = agency.SignalPrompt
		return []agency.Evidence{session, e}
	case "PreToolUse":
		e.Signal, e.ID, e.Tool, e.Text = agency.SignalToolStarted, call(in.Tool, in.Input), in.Tool, input(in.Input)
		if in.Tool == "request_user_input" {
			e.Signal, e.Kind, e.Text = agency.SignalAsked, agency.AsksQuestion, questions(in.Input)
		}
	case "PermissionRequest":
		e.Signal, e.Kind = agency.SignalAsked, agency.AsksPermission
		e.ID, e.Tool, e.Text = call(in.Tool, in.Input), in.Tool, input(in.Input)
	case "PostToolUse":
		e.Signal, e.ID, e.Tool = agency.SignalToolEnded, call(in.Tool, in.Input), in.Tool
		if in.Tool == "request_user_input" {
			e.Signal = agency.SignalAnswered
		}
	case "Stop", "SubagentStop":
		e.Signal, e.Text = agency.SignalTurnEnded, in.Last
	case "SubagentStart":
		e.Signal = agency.SignalBusy
	case "Interrupt":
		e.Signal = agency.SignalInterrupted
	case "SessionEnd":
		e.Signal = agency.SignalEnded
	default:
		e.Signal = agency.SignalUnknown
	}
	return []agency.Evidence{e}
}

// call returns a name for a tool call. A request for permission has no id, and differs from the
// call itself by a description.
func call(tool string, input map[string]json.RawMessage) string {
	call := map[string]json.RawMessage{}
	for key, value := range input {
		if key != "description" {
			call[key] = value
		}
	}
	data, _ := json.Marshal(call) // it was JSON before; the keys are sorted
	sum := sha256.Sum256(append([]byte(tool+"\n"), data...))
	return hex.EncodeToString(sum[:8])
}

// input returns the input of a tool as text.
func input(input map[string]json.RawMessage) string {
	var command string
	if json.Unmarshal(input["command"], &command) == nil && command != "" {
		return command
	}
	if len(input) == 0 {
		return ""
	}
	data, _ := json.Marshal(input)
	return string(data)
}

func questions(input map[string]json.RawMessage) string {
	var questions []struct {
		Question string `json:"question"`
	}
	_ = json.Unmarshal(input["questions"], &questions) // an unreadable question is still one
	var texts []string
	for _, q := range questions {
		texts = append(texts, q.Question)
	}
	return strings.Join(texts, "\n")
}
