package claude

import (
	"encoding/json"

	"agency"
	"agency/internal/harness/agent"
	"agency/internal/protocol"
)

// Claude Code keeps the list of its work by tools: TodoWrite has the whole list, as older versions
// use it, and TaskCreate and TaskUpdate change one step. Their inputs are in its sdk-tools.d.ts.

// planned reads what a tool call does to the list of the agent's work.
func planned(tool, call string, input json.RawMessage) []protocol.Event {
	var in struct {
		Todos []struct {
			Content string           `json:"content"`
			Status  agency.TodoState `json:"status"` // with the words of agency
		} `json:"todos"`
		ID      string           `json:"taskId"`
		Subject string           `json:"subject"`
		Status  agency.TodoState `json:"status"`
	}
	e := protocol.Event{Kind: protocol.Planned}
	switch tool {
	case "TodoWrite":
		if !agent.Lenient(input, &in) {
			return nil
		}
		e.Whole = true
		for _, todo := range in.Todos {
			e.Todos = append(e.Todos, protocol.Todo{Text: todo.Content, State: todo.Status})
		}
	case "TaskCreate":
		if !agent.Lenient(input, &in) || in.Subject == "" {
			return nil
		}
		e.Todos = []protocol.Todo{{Call: call, Text: in.Subject}}
	case "TaskUpdate":
		if !agent.Lenient(input, &in) || in.ID == "" {
			return nil
		}
		if e.Todos = []protocol.Todo{{ID: in.ID, Text: in.Subject, State: in.Status}}; in.Status == "deleted" {
			e.Todos[0].Deleted = true
		}
	default:
		return nil
	}
	return []protocol.Event{e}
}

// named reads the id of the step that a tool call made: it comes with the result.
func (f *frame) named(call string) []protocol.Event {
	var out struct {
		Task struct {
			ID string `json:"id"`
		} `json:"task"`
	}
	if len(f.Returned) == 0 || f.Returned[0] != '{' || !agent.Lenient(f.Returned, &out) || out.Task.ID == "" {
		return nil
	}
	return []protocol.Event{{Kind: protocol.Planned, Todos: []protocol.Todo{{ID: out.Task.ID, Call: call}}}}
}
