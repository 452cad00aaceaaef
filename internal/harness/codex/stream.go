package codex

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"agency"
	"agency/internal/harness/agent"
)

// stream reads a line of codex exec --json.
func stream(line []byte) []agency.Evidence {
	if len(strings.TrimSpace(string(line))) == 0 {
		return nil
	}
	var in struct {
		Type    string `json:"type"`
		Thread  string `json:"thread_id"`
		Message string `json:"message"`
		Usage   *usage `json:"usage"`
		Item    item   `json:"item"`
		Error   struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if !agent.Lenient(line, &in) || in.Type == "" {
		return []agency.Evidence{{Signal: agency.SignalUnknown, Event: "unreadable line"}}
	}
	e := agency.Evidence{Event: in.Type}
	switch in.Type {
	case "thread.started":
		e.Signal, e.Conversation = agency.SignalSession, in.Thread
	case "turn.started":
		e.Signal = agency.SignalPrompt
	case "item.started", "item.updated", "item.completed":
		return in.Item.read(e)
	case "turn.completed":
		e.Signal = agency.SignalTurnEnded
		if in.Usage != nil {
			return []agency.Evidence{{Event: in.Type, Signal: agency.SignalUsage, Usage: in.Usage.total(), Whole: true}, e}
		}
	case "turn.failed":
		e.Signal, e.Class, e.Text = agency.SignalFailed, errorClass(nil, in.Error.Message), in.Error.Message
	case "error":
		// Codex reports every failed try this way, and the last one again at the end of the turn.
		e.Signal, e.Class, e.Text = agency.SignalRetrying, errorClass(nil, in.Message), in.Message
	default:
		e.Signal = agency.SignalUnknown
	}
	return []agency.Evidence{e}
}

// item is one message or action of Codex.
type item struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Command string `json:"command"`
	Server  string `json:"server"`
	Tool    string `json:"tool"`
	Query   string `json:"query"`
	Changes []struct {
		Path string `json:"path"`
	} `json:"changes"`
}

func (i *item) read(e agency.Evidence) []agency.Evidence {
	e.Event += " " + i.Type
	e.ID, e.Tool = i.ID, i.Type
	switch i.Type {
	case "error": // a warning, about a setting for example
		return nil
	case "agent_message", "reasoning", "todo_list", "plan":
		return []agency.Evidence{{Signal: agency.SignalBusy, Event: e.Event}}
	case "command_execution":
		e.Text = i.Command
	case "file_change":
		var paths []string
		for _, change := range i.Changes {
			paths = append(paths, change.Path)
		}
		e.Text = strings.Join(paths, "\n")
	case "mcp_tool_call":
		e.Tool = i.Server + "." + i.Tool
	case "web_search":
		e.Text = i.Query
	case "collab_tool_call":
		e.Tool = i.Tool
	default:
		return []agency.Evidence{{Signal: agency.SignalUnknown, Event: e.Event}}
	}
	switch {
	case strings.HasPrefix(e.Event, "item.started"):
		e.Signal = agency.SignalToolStarted
	case strings.HasPrefix(e.Event, "item.completed"):
		e.Signal = agency.SignalToolEnded
	default:
		return []agency.Evidence{{Signal: agency.SignalBusy, Event: e.Event}}
	}
	return []agency.Evidence{e}
}

// usage is the usage of a whole conversation, also of a resumed one.
type usage struct {
	Input  *int64 `json:"input_tokens"`
	Cached *int64 `json:"cached_input_tokens"`
	Output *int64 `json:"output_tokens"`
}

func (u *usage) total() *agency.Usage {
	return &agency.Usage{InputTokens: u.Input, CachedTokens: u.Cached, OutputTokens: u.Output}
}

// statusInText matches the HTTP status in the text of an error.
var statusInText = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\bstatus:? (\d{3})\b`) })

// errorClass returns the class of an error by Codex's kind of it, or else by its text.
func errorClass(kind json.RawMessage, message string) agency.ErrorClass {
	var name string
	if json.Unmarshal(kind, &name) == nil {
		switch name {
		case "context_window_exceeded":
			return agency.ErrorContext
		case "usage_limit_exceeded":
			return agency.ErrorRateLimit
		case "server_overloaded":
			return agency.ErrorOverloaded
		case "internal_server_error":
			return agency.ErrorServer
		case "unauthorized":
			return agency.ErrorAuth
		}
	}
	// A kind with details is an object with one key.
	var detailed map[string]struct {
		Status int `json:"http_status_code"`
	}
	if json.Unmarshal(kind, &detailed) == nil {
		for _, details := range detailed {
			if class := agent.StatusClass(details.Status); class != agency.ErrorOther {
				return class
			}
		}
	}
	mentions := agent.Mentions(message)
	switch {
	case mentions("context window", "context length", "prompt is too long", "context_length_exceeded"):
		return agency.ErrorContext
	case mentions("insufficient_quota", "billing", "payment"):
		return agency.ErrorBilling
	}
	if found := statusInText().FindStringSubmatch(message); found != nil {
		status, _ := strconv.Atoi(found[1])
		return agent.StatusClass(status)
	}
	switch {
	case mentions("overloaded", "at capacity"):
		return agency.ErrorOverloaded
	case mentions("usage limit", "rate limit", "too many requests"):
		return agency.ErrorRateLimit
	case mentions("invalid_request_error", "bad request"):
		return agency.ErrorRequest
	case mentions("stream disconnected", "connection", "timed out", "error sending request"):
		return agency.ErrorNetwork
	default:
		return agency.ErrorOther
	}
}
