package claude

import (
	"cmp"
	"encoding/json"
	"strings"

	"agency"
	"agency/internal/harness/agent"
)

// entry is one line of Claude Code's output without a terminal, and of its transcript, as far as
// agency reads them.
type entry struct {
	Type    string `json:"type"`
	Subtype string `json:"subtype"`
	Session string `json:"session_id"`
	Model   string `json:"model"`
	State   string `json:"state"`
	Parent  string `json:"parent_tool_use_id"` // the call that made the subagent that this is about
	Message struct {
		ID      string `json:"id"`
		Model   string `json:"model"`
		Content blocks `json:"content"`
		Usage   *usage `json:"usage"`
	} `json:"message"`

	// Fields of a retried call, and of a request for permission.
	Error   string `json:"error"`
	Attempt int    `json:"attempt"`
	Request struct {
		Subtype string          `json:"subtype"`
		Tool    string          `json:"tool_name"`
		Input   json.RawMessage `json:"input"`
		ID      string          `json:"tool_use_id"`
		Agent   string          `json:"agent_id"`
	} `json:"request"`

	// Fields of a result.
	Failed    bool                  `json:"is_error"`
	Result    string                `json:"result"`
	Reason    string                `json:"terminal_reason"`
	ErrorType string                `json:"api_error_type"`
	Errors    []string              `json:"errors"`
	Cost      *float64              `json:"total_cost_usd"`
	Usage     *usage                `json:"usage"`
	Models    map[string]modelUsage `json:"modelUsage"`

	// Fields of a transcript only.
	Sidechain bool   `json:"isSidechain"`
	Source    string `json:"querySource"`
}

// block is a part of a message.
type block struct {
	Type   string          `json:"type"`
	Text   string          `json:"text"`
	ID     string          `json:"id"`
	Name   string          `json:"name"`
	Input  json.RawMessage `json:"input"`
	CallID string          `json:"tool_use_id"`
	// Fields of the result of a tool.
	Content blocks `json:"content"`
	Failed  bool   `json:"is_error"`
}

// blocks are the parts of a message, which may also be one text.
type blocks []block

// UnmarshalJSON never fails: anything else yields no parts.
func (b *blocks) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*b = blocks{{Type: "text", Text: text}}
		return nil
	}
	var blocks []block
	if agent.Lenient(data, &blocks) {
		*b = blocks
	}
	return nil
}

// usage is the usage of one call of the model.
type usage struct {
	Input   int64 `json:"input_tokens"`
	Written int64 `json:"cache_creation_input_tokens"`
	Cached  int64 `json:"cache_read_input_tokens"`
	Output  int64 `json:"output_tokens"`
	// Kept are the cache writes by how long they are kept.
	Kept struct {
		Hour int64 `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
}

func (u *usage) of(model string) agency.ModelUsage {
	hour := min(u.Kept.Hour, u.Written)
	return agency.ModelUsage{Model: model, Input: u.Input, CacheRead: u.Cached, CacheWrite5m: u.Written - hour, CacheWrite1h: hour, Output: u.Output}
}

// modelUsage is the usage of one model so far, including subagents and earlier processes of the
// conversation.
type modelUsage struct {
	Input   int64 `json:"inputTokens"`
	Written int64 `json:"cacheCreationInputTokens"`
	Cached  int64 `json:"cacheReadInputTokens"`
	Output  int64 `json:"outputTokens"`
}

// stream reads one line of the output without a terminal. A line that is not JSON is another output
// format, and yields nothing.
func stream(line []byte) []agency.Evidence {
	var l entry
	if !agent.Lenient(line, &l) || l.Type == "" {
		return nil
	}
	event := l.Type
	if l.Subtype != "" && l.Type == "system" {
		event += " " + l.Subtype
	}
	evidence := l.evidence()
	for i := range evidence {
		evidence[i].Event, evidence[i].Subagent = event, l.Parent
	}
	return evidence
}

func (l *entry) evidence() []agency.Evidence {
	switch l.Type {
	case "system":
		return l.system()
	case "assistant":
		return l.tools(agency.SignalBusy)
	case "user":
		return l.tools("")
	case "result":
		return l.result()
	case "control_request":
		if l.Request.Subtype != "can_use_tool" {
			return nil
		}
		kind := agency.AsksPermission
		if l.Request.Tool == "AskUserQuestion" {
			kind = agency.AsksQuestion
		}
		return []agency.Evidence{{Signal: agency.SignalAsked, ID: l.Request.ID, Kind: kind, Tool: l.Request.Tool, Text: agent.ToolText(l.Request.Input)}}
	case "stream_event", "rate_limit_event", "control_response", "control_cancel_request", "keep_alive", "tool_progress", "tool_use_summary", "auth_status":
		return nil // nothing about the turn
	default:
		return []agency.Evidence{{Signal: agency.SignalUnknown}}
	}
}

func (l *entry) system() []agency.Evidence {
	switch l.Subtype {
	case "init":
		return []agency.Evidence{{Signal: agency.SignalSession, Conversation: l.Session, Model: l.Model}, {Signal: agency.SignalBusy}}
	case "session_state_changed":
		switch l.State {
		case "running":
			return []agency.Evidence{{Signal: agency.SignalAnswered}} // no request is open
		case "idle":
			return []agency.Evidence{{Signal: agency.SignalResting}}
		case "requires_action":
			return []agency.Evidence{{Signal: agency.SignalAsked, Kind: agency.AsksPermission, Text: "It waits for a decision"}}
		default:
			return []agency.Evidence{{Signal: agency.SignalUnknown}}
		}
	case "api_retry":
		return []agency.Evidence{{Signal: agency.SignalRetrying, Class: errorClass(l.Error, ""), Text: l.Error}}
	default:
		return nil // there are many, and none shows that the turn began or ended
	}
}

// tools returns the calls that a message makes or ends; without any, the given signal.
func (l *entry) tools(otherwise agency.Signal) []agency.Evidence {
	var evidence []agency.Evidence
	for _, b := range l.Message.Content {
		switch b.Type {
		case "tool_use":
			evidence = append(evidence, agency.Evidence{Signal: agency.SignalToolStarted, ID: b.ID, Tool: b.Name, Text: agent.ToolText(b.Input)})
		case "tool_result":
			evidence = append(evidence, agency.Evidence{Signal: agency.SignalToolEnded, ID: b.CallID})
		}
	}
	if len(evidence) == 0 && otherwise != "" && l.Error == "" {
		evidence = []agency.Evidence{{Signal: otherwise}}
	}
	return evidence
}

// result reads the end of a turn. Its subtype is success even when a call of the model failed.
func (l *entry) result() []agency.Evidence {
	// The usage of its models is kept with the conversation; without it there is only the usage of
	// this turn.
	evidence := []agency.Evidence{{Signal: agency.SignalUsage, Usage: l.total(), Whole: len(l.Models) > 0}}
	switch {
	case l.Reason == "aborted_streaming" || l.Reason == "aborted_tools":
		return append(evidence, agency.Evidence{Signal: agency.SignalInterrupted})
	case l.Failed:
		text := cmp.Or(l.Result, strings.Join(l.Errors, "\n"), l.Subtype)
		return append(evidence, agency.Evidence{Signal: agency.SignalFailed, Class: errorClass(l.ErrorType, text), Text: text})
	default:
		return append(evidence, agency.Evidence{Signal: agency.SignalTurnEnded, Text: l.Result})
	}
}

// total returns the usage of the conversation so far.
func (l *entry) total() *agency.Usage {
	total := &agency.Usage{}
	switch {
	case len(l.Models) > 0:
		var models []agency.ModelUsage
		for name, m := range l.Models {
			models = append(models, agency.ModelUsage{Model: name, Input: m.Input, CacheRead: m.Cached, CacheWrite5m: m.Written, Output: m.Output})
		}
		total = agency.NewUsage(models...)
	case l.Usage != nil:
		total = agency.NewUsage(l.Usage.of(l.Model))
		total.Models = nil // its result names no model
	}
	total.CostUSD = l.Cost
	return total
}
