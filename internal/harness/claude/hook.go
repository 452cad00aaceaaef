package claude

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"agency"
	"agency/internal/harness/agent"
)

// hookInput is the input of a hook of Claude Code, as far as agency reads it.
type hookInput struct {
	Event        string            `json:"hook_event_name"`
	Session      string            `json:"session_id"`
	Transcript   string            `json:"transcript_path"`
	Agent        string            `json:"agent_id"` // of a subagent
	Model        string            `json:"model"`
	Tool         string            `json:"tool_name"`
	Input        json.RawMessage   `json:"tool_input"`
	Interrupted  bool              `json:"is_interrupt"`
	Notification string            `json:"notification_type"`
	Message      string            `json:"message"`
	Prompt       string            `json:"prompt"`
	LastMessage  string            `json:"last_assistant_message"`
	Tasks        []json.RawMessage `json:"background_tasks"`
	Error        string            `json:"error"`
	Details      string            `json:"error_details"`
	Reason       string            `json:"reason"`
}

// hook reads the input of a hook of Claude Code.
func hook(payload []byte) []agency.Evidence {
	var in hookInput
	if !agent.Lenient(payload, &in) || in.Event == "" {
		return []agency.Evidence{{Signal: agency.SignalUnknown, Event: "unreadable hook"}}
	}
	evidence := in.evidence()
	for i := range evidence {
		evidence[i].Event, evidence[i].Subagent = in.Event, in.Agent
	}
	return evidence
}

func (in *hookInput) evidence() []agency.Evidence {
	one := func(e agency.Evidence) []agency.Evidence { return []agency.Evidence{e} }
	switch in.Event {
	case "SessionStart":
		return one(agency.Evidence{
			Signal: agency.SignalSession, Conversation: in.Session, Model: in.Model,
			Transcript: in.Transcript, Offset: agent.SizeOf(in.Transcript),
		})
	case "UserPromptSubmit":
		if isNotice(in.Prompt) {
			return one(agency.Evidence{Signal: agency.SignalBusy})
		}
		return one(agency.Evidence{Signal: agency.SignalPrompt})
	case "PreToolUse":
		started := one(agency.Evidence{Signal: agency.SignalToolStarted, ID: in.toolID(), Tool: in.Tool, Text: agent.ToolText(in.Input)})
		if in.Tool == "AskUserQuestion" {
			started = append(started, in.asked()) // where everything is permitted, no other event follows
		}
		return started
	case "PermissionRequest":
		return one(in.asked())
	case "PostToolUse":
		return one(agency.Evidence{Signal: agency.SignalToolEnded, ID: in.toolID(), Tool: in.Tool})
	case "PostToolUseFailure":
		ended := one(agency.Evidence{Signal: agency.SignalToolEnded, ID: in.toolID(), Tool: in.Tool, Text: in.Error})
		if in.Interrupted && in.Agent == "" {
			ended = append(ended, agency.Evidence{Signal: agency.SignalInterrupted})
		}
		return ended
	case "PreCompact":
		return one(agency.Evidence{Signal: agency.SignalBusy})
	case "Notification":
		return in.notified()
	case "Stop", "SubagentStop":
		return one(agency.Evidence{Signal: agency.SignalTurnEnded, Text: in.LastMessage, Background: len(in.Tasks)})
	case "StopFailure":
		return one(agency.Evidence{Signal: agency.SignalFailed, Class: errorClass(in.Error, in.Details+" "+in.LastMessage), Text: in.LastMessage})
	case "SessionEnd":
		if in.Reason == "clear" || in.Reason == "resume" {
			return nil // the next conversation begins at once
		}
		return one(agency.Evidence{Signal: agency.SignalEnded})
	default:
		return one(agency.Evidence{Signal: agency.SignalUnknown})
	}
}

// isNotice reports whether Claude Code itself submitted a prompt, as a notice about another agent, such as
// a subagent that ended. Such a prompt answers no request.
func isNotice(prompt string) bool {
	return slices.ContainsFunc([]string{"<task-notification>", "<teammate-message", "<cross-session-message"}, func(tag string) bool {
		return strings.HasPrefix(strings.TrimSpace(prompt), tag)
	})
}

// asked returns a request for permission; a question comes as one too.
func (in *hookInput) asked() agency.Evidence {
	e := agency.Evidence{Signal: agency.SignalAsked, ID: in.toolID(), Kind: agency.AsksPermission, Tool: in.Tool, Text: agent.ToolText(in.Input)}
	if in.Tool == "AskUserQuestion" {
		e.Kind = agency.AsksQuestion
	}
	return e
}

// notified reads a notification. It comes seconds after its cause, so it only adds what nothing
// else reported.
func (in *hookInput) notified() []agency.Evidence {
	switch in.Notification {
	case "permission_prompt", "worker_permission_prompt":
		return []agency.Evidence{{Signal: agency.SignalAsked, Kind: agency.AsksPermission, Text: in.Message}}
	case "elicitation_dialog", "elicitation_url_dialog", "agent_needs_input":
		return []agency.Evidence{{Signal: agency.SignalAsked, Kind: agency.AsksQuestion, Text: in.Message}}
	case "idle_prompt":
		return []agency.Evidence{{Signal: agency.SignalResting}}
	default:
		return nil // it is not about the turn
	}
}

// toolID returns an id for a call of a tool. Claude Code gives requests for permission no id, so this one
// is made from what all three events of a call have: the tool and its input. The last event of a question
// has the answers in its input.
func (in *hookInput) toolID() string {
	var input any
	if json.Unmarshal(in.Input, &input) != nil {
		input = nil
	}
	if fields, ok := input.(map[string]any); ok && in.Tool == "AskUserQuestion" {
		input = fields["questions"]
	}
	canonical, err := json.Marshal([]any{in.Tool, input, in.Agent})
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:8])
}

// errorClass returns the class of an error by Claude Code's name of it, and by its text where a
// name has several meanings.
func errorClass(name, text string) agency.ErrorClass {
	text = strings.ToLower(text)
	switch name {
	case "rate_limit", "rate_limit_error":
		return agency.ErrorRateLimit
	case "authentication_failed", "authentication_error", "oauth_org_not_allowed", "permission_error":
		return agency.ErrorAuth
	case "billing_error":
		return agency.ErrorBilling
	case "overloaded", "overloaded_error":
		return agency.ErrorOverloaded
	case "invalid_request", "invalid_request_error", "request_too_large":
		if strings.Contains(text, "prompt is too long") {
			return agency.ErrorContext
		}
		return agency.ErrorRequest
	case "model_not_found", "not_found_error":
		return agency.ErrorRequest
	case "server_error", "api_error", "timeout_error":
		switch {
		case strings.Contains(text, "overloaded"), strings.Contains(text, "529"):
			return agency.ErrorOverloaded
		case strings.Contains(text, "connection"), strings.Contains(text, "econn"), strings.Contains(text, "timed out"):
			return agency.ErrorNetwork
		}
		return agency.ErrorServer
	default:
		return agency.ErrorOther
	}
}
