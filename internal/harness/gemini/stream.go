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
		return []agency.Evidence{{Signal: agency.SignalUnknown, Event: "unreadable line"}}
	}
	e := agency.Evidence{Event: in.Type}
	switch in.Type {
	case "init":
		e.Signal, e.Conversation, e.Model = agency.SignalSession, in.Session, in.Model
	case "message":
		if e.Signal = agency.SignalBusy; in.Role == "user" {
			e.Signal = agency.SignalPrompt
		}
	case "tool_use":
		e.Signal, e.ID, e.Tool, e.Text = agency.SignalToolStarted, in.ToolID, in.Tool, agent.ToolText(in.Input)
	case "tool_result":
		e.Signal, e.ID = agency.SignalToolEnded, in.ToolID
	case "error": // a warning, or an error that the result repeats
		e.Signal, e.Text = agency.SignalBusy, in.Message
	case "result":
		e.Signal = agency.SignalTurnEnded
		if in.Status != "success" {
			e.Signal, e.Class, e.Text = agency.SignalFailed, agent.ErrorClass(in.Error.Message), in.Error.Message
		}
		if in.Stats != nil {
			used := &agency.Usage{InputTokens: in.Stats.Input, CachedTokens: in.Stats.Cached, OutputTokens: in.Stats.Output}
			return []agency.Evidence{{Event: in.Type, Signal: agency.SignalUsage, Usage: used}, e}
		}
	default:
		e.Signal = agency.SignalUnknown
	}
	return []agency.Evidence{e}
}
