package gemini

import (
	"encoding/json"

	"agency"
	"agency/internal/harness/agent"
)

// stream reads a line of gemini -o stream-json.
func stream(line []byte) []agency.Evidence {
	var in struct {
		Type     string          `json:"type"`
		Session  string          `json:"session_id"`
		Model    string          `json:"model"`
		Role     string          `json:"role"`
		Tool     string          `json:"tool_name"`
		ToolID   string          `json:"tool_id"`
		Input    json.RawMessage `json:"parameters"`
		Status   string          `json:"status"`
		Severity string          `json:"severity"`
		Message  string          `json:"message"`
		Error    struct {
			Message string `json:"message"`
		} `json:"error"`
		Stats *struct {
			Input  *int64 `json:"input_tokens"`
			Output *int64 `json:"output_tokens"`
			Cached *int64 `json:"cached"`
		} `json:"stats"`
	}
	if !agent.Lenient(line, &in) || in.Type == "" {
		return []agency.Evidence{{Sign: agency.SignUnknown, Event: "unreadable line"}}
	}
	e := agency.Evidence{Event: in.Type}
	switch in.Type {
	case "init":
		e.Sign, e.Conversation, e.Model = agency.SignSession, in.Session, in.Model
	case "message":
		if e.Sign = agency.SignBusy; in.Role == "user" {
			e.Sign = agency.SignPrompt
		}
	case "tool_use":
		e.Sign, e.ID, e.Tool, e.Text = agency.SignToolStarted, in.ToolID, in.Tool, agent.ToolText(in.Input)
	case "tool_result":
		e.Sign, e.ID = agency.SignToolEnded, in.ToolID
	case "error": // a warning, or an error that the result tells again
		e.Sign, e.Text = agency.SignBusy, in.Message
	case "result":
		e.Sign = agency.SignTurnEnded
		if in.Status != "success" {
			e.Sign, e.Class, e.Text = agency.SignFailed, agent.ErrorClass(in.Error.Message), in.Error.Message
		}
		if in.Stats != nil {
			used := &agency.Usage{InputTokens: in.Stats.Input, CachedTokens: in.Stats.Cached, OutputTokens: in.Stats.Output}
			return []agency.Evidence{{Event: in.Type, Sign: agency.SignUsage, Usage: used}, e}
		}
	default:
		e.Sign = agency.SignUnknown
	}
	return []agency.Evidence{e}
}
