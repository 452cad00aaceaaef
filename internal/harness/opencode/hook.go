package opencode

import (
	"encoding/json"
	"fmt"
	"strings"

	"agency"
	"agency/internal/harness/agent"
)

// event is one event of OpenCode as its plugin passes it on.
type event struct {
	Type   string `json:"type"`
	Parent string `json:"parent"` // of a session that helps another
	Of     struct {
		ID      string   `json:"id"`
		Session string   `json:"sessionID"`
		Request string   `json:"requestID"`
		Info    session  `json:"info"`
		Part    part     `json:"part"`
		Status  status   `json:"status"`
		Error   *failure `json:"error"`
		Text    string   `json:"text"`
		Count   int      `json:"count"`
		request
	} `json:"properties"`
}

type session struct {
	ID    string `json:"id"`
	Model struct {
		ID       string `json:"id"`
		Provider string `json:"providerID"`
	} `json:"model"`
	used
}

type status struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// part is a part of a message.
type part struct {
	Type   string `json:"type"`
	Tool   string `json:"tool"`
	CallID string `json:"callID"`
	State  struct {
		Status string          `json:"status"`
		Input  json.RawMessage `json:"input"`
	} `json:"state"`
	Reason string `json:"reason"`
	used
}

// used is what a session has used, or a step.
type used struct {
	Cost   *float64 `json:"cost"`
	Tokens *struct {
		Input     int64 `json:"input"`
		Output    int64 `json:"output"`
		Reasoning int64 `json:"reasoning"`
		Cache     struct {
			Read  int64 `json:"read"`
			Write int64 `json:"write"`
		} `json:"cache"`
	} `json:"tokens"`
}

// usage returns nil when nothing was used yet. A cost of 0 means that OpenCode does not know the
// model's price.
func (u *used) usage() *agency.Usage {
	t := u.Tokens
	if t == nil {
		return nil
	}
	input, output := t.Input+t.Cache.Read+t.Cache.Write, t.Output+t.Reasoning
	if input == 0 && output == 0 {
		return nil
	}
	usage := &agency.Usage{InputTokens: &input, CachedTokens: &t.Cache.Read, OutputTokens: &output}
	if u.Cost != nil && *u.Cost > 0 {
		usage.CostUSD = u.Cost
	}
	return usage
}

// hook reads a list of events that the plugin passes on.
func hook(payload []byte) []agency.Evidence {
	var list []json.RawMessage
	if json.Unmarshal(payload, &list) != nil {
		return []agency.Evidence{{Signal: agency.SignalUnknown, Event: "unreadable hook"}}
	}
	var evidence []agency.Evidence
	for _, data := range list {
		var e event
		if !agent.Lenient(data, &e) || e.Type == "" {
			evidence = append(evidence, agency.Evidence{Signal: agency.SignalUnknown, Event: "unreadable event"})
			continue
		}
		of := e.evidence()
		for i := range of {
			of[i].Event = e.Type
			if e.Parent != "" {
				of[i].Subagent = e.Of.Session
			}
		}
		evidence = append(evidence, of...)
	}
	return evidence
}

func (e *event) evidence() []agency.Evidence {
	of := &e.Of
	one := func(e agency.Evidence) []agency.Evidence { return []agency.Evidence{e} }
	switch e.Type {
	case "session.created", "session.updated":
		return e.session()
	case "chat.message":
		return []agency.Evidence{{Signal: agency.SignalSession, Conversation: of.Session}, {Signal: agency.SignalPrompt}}
	case "message.part.updated":
		return of.Part.tool()
	case "session.status":
		return one(of.Status.evidence())
	case "session.cut":
		text := "the model's answer ended early"
		if of.Count > 1 {
			text = fmt.Sprintf("the model's answers ended early %d times in a row", of.Count)
		}
		return one(agency.Evidence{Signal: agency.SignalRetrying, Class: agency.ErrorNetwork, Text: text})
	case "permission.asked":
		return one(agency.Evidence{Signal: agency.SignalAsked, Kind: agency.AsksPermission, ID: of.ID, Tool: of.Kind, Text: of.permission()})
	case "question.asked":
		return one(agency.Evidence{Signal: agency.SignalAsked, Kind: agency.AsksQuestion, ID: of.ID, Text: of.question()})
	case "permission.replied", "question.replied", "question.rejected":
		return one(agency.Evidence{Signal: agency.SignalAnswered, ID: of.Request})
	case "session.error":
		return one(of.Error.evidence())
	case "session.idle":
		if of.Error == nil {
			return one(agency.Evidence{Signal: agency.SignalTurnEnded, Text: of.Text})
		}
		if of.Error.Name == overflow {
			return one(agency.Evidence{Signal: agency.SignalFailed, Class: agency.ErrorContext, Text: of.Error.Data.Message})
		}
		return one(agency.Evidence{Signal: agency.SignalResting}) // the error gave the reason
	default:
		return one(agency.Evidence{Signal: agency.SignalUnknown})
	}
}

// session is OpenCode's record of a conversation, over all programs that continued it. A subagent's
// usage is not part of the sum, and would replace it.
func (e *event) session() []agency.Evidence {
	info := &e.Of.Info
	known := agency.Evidence{Signal: agency.SignalSession, Conversation: info.ID}
	if info.Model.ID != "" {
		known.Model = info.Model.Provider + "/" + info.Model.ID
	}
	if usage := info.usage(); usage != nil && e.Parent == "" {
		return []agency.Evidence{known, {Signal: agency.SignalUsage, Usage: usage, Whole: true}}
	}
	return []agency.Evidence{known}
}

func (p *part) tool() []agency.Evidence {
	switch {
	case p.Type != "tool":
		return nil
	case p.State.Status == "running":
		return []agency.Evidence{{Signal: agency.SignalToolStarted, ID: p.CallID, Tool: p.Tool, Text: agent.ToolText(p.State.Input)}}
	case p.State.Status == "completed" || p.State.Status == "error":
		return []agency.Evidence{{Signal: agency.SignalToolEnded, ID: p.CallID, Tool: p.Tool}}
	default:
		return nil
	}
}

func (s *status) evidence() agency.Evidence {
	switch s.Type {
	case "busy":
		return agency.Evidence{Signal: agency.SignalBusy}
	case "retry":
		return agency.Evidence{Signal: agency.SignalRetrying, Class: agent.ErrorClass(s.Message), Text: s.Message}
	default:
		return agency.Evidence{Signal: agency.SignalUnknown}
	}
}

// request returns the request of a permission or a question.
type request struct {
	Kind     string   `json:"permission"`
	Patterns []string `json:"patterns"`
	Metadata struct {
		Command string `json:"command"`
		File    string `json:"filepath"`
		URL     string `json:"url"`
	} `json:"metadata"`
	Questions []struct {
		Question string `json:"question"`
	} `json:"questions"`
}

func (r *request) permission() string {
	for _, text := range []string{r.Metadata.Command, r.Metadata.File, r.Metadata.URL} {
		if text != "" {
			return text
		}
	}
	return strings.Join(r.Patterns, ", ")
}

func (r *request) question() string {
	questions := make([]string, 0, len(r.Questions))
	for _, q := range r.Questions {
		questions = append(questions, q.Question)
	}
	return strings.Join(questions, "\n")
}
