package copilot

import (
	"encoding/json"

	"agency"
	"agency/internal/harness/agent"
)

// errorHook is the hook that is called for each call of the model that failed, before it is tried
// again. In this spelling its input names it.
const errorHook = "ErrorOccurred"

// hook reads the input of a hook of Copilot. The last failure of a turn is reported too; the
// conversation's file then shows that the turn ended.
func hook(payload []byte) []agency.Evidence {
	var in struct {
		Event string `json:"hook_event_name"`
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if !agent.Lenient(payload, &in) || in.Event == "" {
		return []agency.Evidence{{Signal: agency.SignalUnknown, Event: "unreadable hook"}}
	}
	if in.Event != errorHook {
		return []agency.Evidence{{Signal: agency.SignalUnknown, Event: in.Event}}
	}
	text := in.Error.Message
	var details struct { // an error of the model's server comes as it was sent
		Message string `json:"message"`
		Type    string `json:"type"`
	}
	class := agent.ErrorClass(text)
	if json.Unmarshal([]byte(text), &details) == nil && details.Message != "" {
		text = details.Message
	}
	return []agency.Evidence{{Signal: agency.SignalRetrying, Event: in.Event, Class: class, Text: text}}
}
