package claude

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"agency"
	"agency/internal/harness/agent"
	"agency/internal/protocol"
)

// dialect is the control protocol of claude -p with stream-json on both sides.
var dialect = protocol.Dialect{
	Name: "stream-json with control requests", Hello: hello, Read: readFrame, Message: sayMessage, Interrupt: sayInterrupt, Answer: replyTo, Refuse: refuse, Reasons: true,
	Set: saySetting, TakeBack: sayTakeBack,
}

// protocolArgs returns the arguments with which Claude Code speaks the protocol, repeats messages with the
// ids that agency gave them, and asks for permission.
func protocolArgs() []string {
	return []string{
		"-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose", "--replay-user-messages",
		"--permission-prompt-tool", "stdio",
	}
}

// frame is one line in the protocol, as far as agency reads it: a line of the stream, or one about a
// request.
type frame struct {
	entry

	Returned  json.RawMessage `json:"tool_use_result"` // of the tool call of a message; a text when it failed
	UUID      string          `json:"uuid"`
	Mode      string          `json:"permissionMode"`
	Replay    bool            `json:"isReplay"`
	Command   string          `json:"command_uuid"`
	RequestID string          `json:"request_id"`
	Response  struct {
		Subtype   string `json:"subtype"`
		RequestID string `json:"request_id"`
		Error     string `json:"error"`
		Response  struct {
			Behavior  string   `json:"behavior"`
			Queued    []string `json:"still_queued"`
			Cancelled *bool    `json:"cancelled"` // whether a message was taken back
			Model     string   `json:"model"`     // the one that is used now
			Mode      string   `json:"mode"`
			Present   string   `json:"current_permission_mode"`
			Models    []struct {
				Value string `json:"value"`
			} `json:"models"`
		} `json:"response"`
	} `json:"response"`
}

// readFrame reads one line of Claude Code.
func readFrame(line []byte) []protocol.Event {
	var f frame
	if !agent.Lenient(line, &f) || f.Type == "" {
		return []protocol.Event{{Kind: protocol.Unknown, Name: "a line that is not a frame"}}
	}
	name := f.Type
	if kind := cmp.Or(f.Subtype, f.Request.Subtype); kind != "" && f.Type != "result" {
		name += " " + kind
	}
	events := f.events()
	for i := range events {
		e := &events[i]
		e.Name, e.Subagent = name, cmp.Or(e.Subagent, f.Parent)
	}
	return events
}

func (f *frame) events() []protocol.Event {
	one := func(e protocol.Event) []protocol.Event { return []protocol.Event{e} }
	switch f.Type {
	case "system":
		return f.systemEvents()
	case "assistant", "user":
		return f.messageEvents()
	case "result":
		return one(f.ended())
	case "command_lifecycle":
		kind := map[string]protocol.Kind{"queued": protocol.Taken, "started": protocol.Begun, "completed": protocol.Done, "cancelled": protocol.Dropped}[f.State]
		return one(protocol.Event{Kind: kind, ID: f.Command})
	case "control_request":
		return f.asked()
	case "control_cancel_request":
		return one(protocol.Event{Kind: protocol.Withdrawn, ID: f.RequestID})
	case "control_response":
		return f.replied()
	case "stream_event", "rate_limit_event", "keep_alive", "tool_progress", "tool_use_summary", "auth_status", "prompt_suggestion":
		return nil // nothing about the turn
	default:
		return one(protocol.Event{Kind: protocol.Unknown})
	}
}

func (f *frame) systemEvents() []protocol.Event {
	switch f.Subtype {
	case "init":
		return []protocol.Event{{Kind: protocol.Session, Conversation: f.Session, Settings: agency.Settings{Model: f.Model, PermissionMode: f.Mode}}}
	case "status":
		if f.Mode == "" {
			return nil
		}
		return []protocol.Event{{Kind: protocol.Session, Settings: agency.Settings{PermissionMode: f.Mode}}}
	case "session_state_changed":
		switch f.State {
		case "running":
			return []protocol.Event{{Kind: protocol.Working}}
		case "idle":
			return []protocol.Event{{Kind: protocol.Resting}}
		case "requires_action":
			return nil // the request itself comes in the same moment
		default:
			return []protocol.Event{{Kind: protocol.Unknown}}
		}
	case "api_retry":
		return []protocol.Event{{Kind: protocol.Retrying, Class: errorClass(f.Error, ""), Text: f.Error}}
	default:
		return nil // there are many, and none shows that the turn began or ended
	}
}

// messageEvents reads what the model said, its tool calls, and their results.
func (f *frame) messageEvents() []protocol.Event {
	if f.Replay {
		return []protocol.Event{{Kind: protocol.Taken, ID: f.UUID}}
	}
	var events []protocol.Event
	for _, b := range f.Message.Content {
		switch {
		case b.Type == "text" && f.Type == "assistant" && strings.TrimSpace(b.Text) != "":
			events = append(events, protocol.Event{Kind: protocol.Message, Text: b.Text})
		case b.Type == "tool_use":
			events = append(events, protocol.Event{Kind: protocol.Tool, ID: b.ID, Tool: b.Name, Text: agent.ToolText(b.Input)})
			events = append(events, planned(b.Name, b.ID, b.Input)...)
		case b.Type == "tool_result":
			events = append(events, f.named(b.CallID)...)
			events = append(events, protocol.Event{Kind: protocol.ToolEnded, ID: b.CallID, Text: b.Content.text(), Failed: b.Failed})
		}
	}
	return events
}

// text returns the texts of a message.
func (b blocks) text() string {
	var texts []string
	for _, part := range b {
		if part.Type == "text" {
			texts = append(texts, part.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// ended reads the end of a turn, after which subagents may still work.
func (f *frame) ended() protocol.Event {
	e := protocol.Event{Kind: protocol.Ended, Usage: f.total(), Whole: len(f.Models) > 0, Text: f.Result}
	switch {
	case f.Reason == "aborted_streaming" || f.Reason == "aborted_tools":
		e.Interrupted = true
	case f.Failed:
		e.Failed, e.Text = true, cmp.Or(f.Result, strings.Join(f.Errors, "\n"), f.Subtype)
		e.Class = errorClass(f.ErrorType, e.Text)
	}
	return e
}

func (f *frame) asked() []protocol.Event {
	q := &f.Request
	if q.Subtype != "can_use_tool" {
		return []protocol.Event{{Kind: protocol.Foreign, ID: f.RequestID}}
	}
	r := &protocol.Request{
		ID: f.RequestID, Kind: agency.AsksPermission, Tool: q.Tool, Text: agent.ToolText(q.Input), Subagent: q.Agent, Input: slices.Clone(q.Input),
	}
	if q.Tool == questionTool {
		r.Kind, r.Options = agency.AsksQuestion, []string{}
		for _, question := range readQuestions(q.Input) {
			for _, o := range question.Options {
				r.Options = append(r.Options, o.Label)
			}
		}
	}
	return []protocol.Event{{Kind: protocol.Asked, ID: f.RequestID, Subagent: q.Agent, Request: r}}
}

// replied reads the reply to a request of agency, or the answer to a request of Claude Code, which repeats
// an answer when it has taken it.
func (f *frame) replied() []protocol.Event {
	r := &f.Response
	if r.Response.Behavior != "" {
		return []protocol.Event{{Kind: protocol.Answered, ID: r.RequestID}}
	}
	e := protocol.Event{
		Kind: protocol.Replied, ID: r.RequestID, Queued: r.Response.Queued, Failed: r.Subtype != "success", Text: r.Error,
		Settings: agency.Settings{Model: r.Response.Model, PermissionMode: r.Response.Mode},
	}
	if taken := r.Response.Cancelled; taken != nil && !*taken {
		e.Failed, e.Text = true, "it has begun with the message, or does not have it"
	}
	if len(r.Response.Models) == 0 {
		return []protocol.Event{e}
	}
	offers := agency.Settings{PermissionMode: r.Response.Present, PermissionModes: permissionModes}
	for _, m := range r.Response.Models {
		offers.Models = append(offers.Models, m.Value)
	}
	return []protocol.Event{{Kind: protocol.Session, Settings: offers}, e}
}

// permissionModes are those of Claude Code, which does not list them.
var permissionModes = []string{"default", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions"}

// questionTool is the tool with which Claude Code asks the user.
const questionTool = "AskUserQuestion"

type question struct {
	Question string `json:"question"`
	Options  []struct {
		Label string `json:"label"`
	} `json:"options"`
}

func readQuestions(input json.RawMessage) []question {
	var in struct {
		Questions []question `json:"questions"`
	}
	agent.Lenient(input, &in)
	return in.Questions
}

func hello(_ protocol.Place, id string) []byte {
	return encode(map[string]any{"type": "control_request", "request_id": id, "request": map[string]any{"subtype": "initialize"}})
}

func sayInterrupt(_ protocol.Place, id string) []byte {
	return encode(map[string]any{"type": "control_request", "request_id": id, "request": map[string]any{"subtype": "interrupt"}})
}

func saySetting(_ protocol.Place, id string, setting agency.Setting, value string) ([]byte, error) {
	request := map[string]any{"subtype": "set_model", "model": value}
	if setting == agency.SettingPermissionMode {
		request = map[string]any{"subtype": "set_permission_mode", "mode": value}
	}
	return encode(map[string]any{"type": "control_request", "request_id": id, "request": request}), nil
}

func sayTakeBack(id, message string) []byte {
	return encode(map[string]any{"type": "control_request", "request_id": id, "request": map[string]any{"subtype": "cancel_async_message", "message_uuid": message}})
}

// sayMessage returns a message. Claude Code reads the files that its text mentions.
func sayMessage(_ protocol.Place, id, text string, files []string) []byte {
	for _, path := range files {
		text += "\n@\"" + path + "\"" // quoted, since a folder may have a space
	}
	return encode(map[string]any{
		"type": "user", "uuid": id, "session_id": "", "parent_tool_use_id": nil, "message": map[string]any{"role": "user", "content": text},
	})
}

// replyTo returns the answer to a request. An answer that allows repeats the input of the request.
func replyTo(r *protocol.Request, reply agency.Reply) ([]byte, error) {
	response := map[string]any{"behavior": "allow", "updatedInput": r.Input}
	switch {
	case reply.Decision == agency.Deny:
		response = map[string]any{"behavior": "deny", "message": cmp.Or(reply.Reason(), "The user refused this.")}
	case r.Kind == agency.AsksQuestion:
		input, err := withAnswers(r.Input, reply.Text)
		if err != nil {
			return nil, err
		}
		response["updatedInput"] = input
	}
	return encode(map[string]any{
		"type": "control_response", "response": map[string]any{"subtype": "success", "request_id": r.ID, "response": response},
	}), nil
}

func refuse(id, name string) []byte {
	return encode(map[string]any{
		"type": "control_response", "response": map[string]any{"subtype": "error", "request_id": id, "error": "agency does not know the request " + name},
	})
}

// withAnswers returns the input of a question with the answers in it. Several questions are answered in
// order, with ";" between the answers.
func withAnswers(input json.RawMessage, text string) (map[string]any, error) {
	questions := readQuestions(input)
	texts := []string{text}
	if len(questions) > 1 {
		texts = strings.Split(text, ";")
	}
	if len(texts) != len(questions) {
		return nil, agency.Errorf(agency.CodeUsage, "it asks %d questions, and the answer has %d parts", len(questions), len(texts)).
			WithHint(`answer each, with ";" between: "Red; the second one"`)
	}
	answers := map[string]string{}
	for i, q := range questions {
		answers[q.Question] = q.choose(strings.TrimSpace(texts[i]))
	}
	with := map[string]any{}
	if err := json.Unmarshal(input, &with); err != nil {
		return nil, agency.Errorf(agency.CodeInputRefused, "its question cannot be read: %w", err)
	}
	with["answers"] = answers
	return with, nil
}

// choose returns the option that a text names in any case, or else the text.
func (q *question) choose(text string) string {
	for _, o := range q.Options {
		if strings.EqualFold(o.Label, text) {
			return o.Label
		}
	}
	return text
}

// encode returns a frame, which is one line.
func encode(frame map[string]any) []byte {
	data, err := json.Marshal(frame)
	if err != nil {
		panic(err) // never: frames have only texts, lists and valid JSON
	}
	return append(data, '\n')
}
