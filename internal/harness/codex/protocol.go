package codex

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"agency"
	"agency/internal/harness/jsonrpc"
	"agency/internal/protocol"
)

// dialect is the protocol of codex app-server on its standard input and output: JSON-RPC without the
// version, one message a line. `codex app-server generate-json-schema --out DIR` describes it.
var dialect = protocol.Dialect{
	Name: "the protocol of codex app-server", Hello: hello, Read: reader.Read, Message: sayMessage, Interrupt: sayInterrupt, Look: sayLook, Answer: replyTo, Refuse: refuse, Set: saySetting, Guests: &guests,
}

type message = jsonrpc.Message[params, result, turnError]

type result struct {
	threadSettings
	greeting
	Thread struct {
		ID        string `json:"id"`
		Ephemeral bool   `json:"ephemeral"`
	} `json:"thread"`
	Turn   turn   `json:"turn"`
	TurnID string `json:"turnId"` // of a message that Codex took into the current turn
	Data   []struct {
		Model string `json:"model"`
	} `json:"data"` // of model/list
}

type params struct {
	Settings  threadSettings  `json:"threadSettings"`
	Thread    string          `json:"threadId"`
	TurnID    string          `json:"turnId"`
	Turn      turn            `json:"turn"`
	Item      protocolItem    `json:"item"`
	ItemID    string          `json:"itemId"`
	Request   json.RawMessage `json:"requestId"`
	Error     *turnError      `json:"error"`
	WillRetry bool            `json:"willRetry"`
	Tokens    struct {
		Total struct {
			Input  *int64 `json:"inputTokens"`
			Cached *int64 `json:"cachedInputTokens"`
			Output *int64 `json:"outputTokens"`
		} `json:"total"`
	} `json:"tokenUsage"`
	Plan []struct {
		Step   string `json:"step"`
		Status string `json:"status"`
	} `json:"plan"`

	// Of requests.
	Command     string          `json:"command"`
	Actions     []action        `json:"commandActions"`
	Reason      string          `json:"reason"`
	Message     string          `json:"message"`
	Server      string          `json:"serverName"`
	Questions   []question      `json:"questions"`
	Permissions json.RawMessage `json:"permissions"`
}

type action struct {
	Command string `json:"command"`
}

type question struct {
	ID       string `json:"id"`
	Question string `json:"question"`
	Options  []struct {
		Label string `json:"label"`
	} `json:"options"`
}

type turn struct {
	ID     string         `json:"id"`
	Status string         `json:"status"`
	Error  *turnError     `json:"error"`
	Items  []protocolItem `json:"items"`
}

type turnError struct {
	Message string          `json:"message"`
	Info    json.RawMessage `json:"codexErrorInfo"`
}

// protocolItem is one message or action of Codex.
type protocolItem struct {
	item
	Client  string   `json:"clientId"`
	Text    string   `json:"text"`
	Actions []action `json:"commandActions"`
	Output  string   `json:"aggregatedOutput"`
	Status  string   `json:"status"`
}

var reader = jsonrpc.Reader[params, result, turnError]{
	Reply: replied, Request: asked, Notification: notified, Thread: func(p *params) string { return p.Thread },
}

// replied reads the reply to a request of agency. The reply to a message comes when Codex has the message.
func replied(m *message) []protocol.Event {
	id := m.OurID()
	switch r := &m.Result; {
	case m.Error != nil:
		return []protocol.Event{{Kind: protocol.Replied, ID: id, Failed: true, Text: m.Error.Message}}
	case r.Turn.ID != "" || r.TurnID != "":
		return []protocol.Event{{Kind: protocol.Taken, ID: id}}
	case strings.HasPrefix(id, guestPrefix):
		return r.repliedGuest()
	case r.UserAgent != "":
		greets, _ := json.Marshal(r.greeting) // texts
		return []protocol.Event{{Kind: protocol.Session, Greeting: greets}}
	case r.Model != "": // the conversation began
		return []protocol.Event{{Kind: protocol.Session, Conversation: r.Thread.ID, Settings: r.now()}, {Kind: protocol.Replied, ID: id}}
	case len(r.Data) > 0:
		offers := agency.Settings{PermissionModes: permissionModes()}
		for _, m := range r.Data {
			offers.Models = append(offers.Models, m.Model)
		}
		return []protocol.Event{{Kind: protocol.Session, Settings: offers}}
	default:
		return []protocol.Event{{Kind: protocol.Replied, ID: id}}
	}
}

// notices are the notifications that say nothing about the turn.
var notices = []string{
	"thread/", "hook/", "item/", "turn/diff/updated", "account/", "mcpServer/", "remoteControl/", "skills/", "app/", "model/",
	"warning", "guardianWarning", "deprecationNotice", "configWarning", "rawResponseItem/", "project/", "fs/", "process/", "command/",
}

func notified(m *message) []protocol.Event {
	one := func(e protocol.Event) []protocol.Event { return []protocol.Event{e} }
	switch p := &m.Params; m.Method {
	case "turn/started":
		return one(protocol.Event{Kind: protocol.Working, Turn: p.Turn.ID})
	case "turn/completed":
		return []protocol.Event{p.Turn.ended(), {Kind: protocol.Resting}}
	case "thread/settings/updated":
		return one(protocol.Event{Kind: protocol.Session, Settings: p.Settings.now()})
	case "item/started", "item/completed":
		return p.Item.events(strings.HasSuffix(m.Method, "completed"), p.TurnID)
	case "serverRequest/resolved":
		return one(protocol.Event{Kind: protocol.Answered, ID: string(p.Request)})
	case "turn/plan/updated":
		e := protocol.Event{Kind: protocol.Planned, Whole: true}
		for _, step := range p.Plan {
			todo := protocol.Todo{Text: step.Step, State: agency.TodoState(step.Status)}
			if step.Status == "inProgress" {
				todo.State = agency.TodoInProgress
			}
			e.Todos = append(e.Todos, todo)
		}
		return one(e)
	case "thread/tokenUsage/updated":
		t := &p.Tokens.Total
		return one(protocol.Event{Kind: protocol.Used, Usage: &agency.Usage{InputTokens: t.Input, CachedTokens: t.Cached, OutputTokens: t.Output}, Whole: true})
	case "error":
		if !p.WillRetry || p.Error == nil {
			return nil // the end of the turn says it again
		}
		return one(protocol.Event{Kind: protocol.Retrying, Class: p.Error.class(), Text: p.Error.Message})
	}
	if slices.ContainsFunc(notices, func(begin string) bool { return strings.HasPrefix(m.Method, begin) }) {
		return nil
	}
	return one(protocol.Event{Kind: protocol.Unknown})
}

func (t *turn) ended() protocol.Event {
	e := protocol.Event{Kind: protocol.Ended, Interrupted: t.Status == "interrupted", Failed: t.Status == "failed"}
	for _, i := range t.Items {
		if i.Type == "agentMessage" {
			e.Text = i.Text
		}
	}
	if e.Failed {
		e.Class, e.Text = agency.ErrorOther, "the turn failed"
		if t.Error != nil {
			e.Class, e.Text = t.Error.class(), t.Error.Message
		}
	}
	return e
}

// class returns the class of an error. The protocol writes Codex's kinds of errors in camel case, and
// the files of a conversation in snake case.
func (e *turnError) class() agency.ErrorClass {
	var snake bytes.Buffer
	for _, c := range e.Info {
		if c >= 'A' && c <= 'Z' {
			snake.WriteByte('_')
			c += 'a' - 'A'
		}
		snake.WriteByte(c)
	}
	return errorClass(snake.Bytes(), e.Message)
}

// events reads what Codex said or did.
func (i *protocolItem) events(completed bool, turn string) []protocol.Event {
	tool := protocol.Event{Kind: protocol.Tool, ID: i.ID, Tool: i.Type}
	switch i.Type {
	case "userMessage":
		if completed || i.Client == "" {
			return nil
		}
		return []protocol.Event{{Kind: protocol.Begun, ID: i.Client, Turn: turn}}
	case "agentMessage":
		if !completed || strings.TrimSpace(i.Text) == "" {
			return nil
		}
		return []protocol.Event{{Kind: protocol.Message, Text: i.Text}}
	case "commandExecution":
		tool.Tool, tool.Text = shellTool, plainCommand(i.Command, i.Actions)
	case "fileChange":
		var paths []string
		for _, change := range i.Changes {
			paths = append(paths, change.Path)
		}
		tool.Tool, tool.Text = patchTool, strings.Join(paths, "\n")
	case "mcpToolCall":
		tool.Tool = i.Server + "." + i.Tool
	case "collabAgentToolCall", "dynamicToolCall":
		tool.Tool = i.Tool
	case "webSearch":
		tool.Text = i.Query
	default:
		return nil // a thought, a plan, a summary of the conversation
	}
	if completed {
		tool.Kind, tool.Text, tool.Failed = protocol.ToolEnded, i.Output, i.Status == "failed" || i.Status == "declined"
	}
	return []protocol.Event{tool}
}

// The names of tools, as Codex's hooks have them.
const (
	shellTool = "Bash"
	patchTool = "apply_patch"
)

// plainCommand returns a command without the shell that runs it.
func plainCommand(command string, actions []action) string {
	if len(actions) == 1 && actions[0].Command != "" {
		return actions[0].Command
	}
	return command
}

// asked reads a request. Each process of Codex counts its requests from the beginning, so the id for
// agency has the id of the tool call before the number.
func asked(m *message) []protocol.Event {
	p := &m.Params
	r := &protocol.Request{
		ID: fmt.Sprintf("%s.%s", p.ItemID, m.ID), Number: string(m.ID), Kind: agency.AsksPermission, Call: p.ItemID, Text: p.Reason,
	}
	back := requested{ID: m.ID, Method: m.Method, Questions: p.Questions, Permissions: p.Permissions}
	switch m.Method {
	case "item/commandExecution/requestApproval":
		r.Tool, r.Text = shellTool, plainCommand(p.Command, p.Actions)
	case "item/fileChange/requestApproval":
		r.Tool = patchTool
		r.Text = "" // that of the call names the files
	case "item/permissions/requestApproval":
		r.Tool, r.Text = "more permissions", cmp.Or(p.Reason, string(p.Permissions))
	case "mcpServer/elicitation/request":
		r.ID, r.Tool, r.Text = fmt.Sprintf("%s.%s", p.TurnID, m.ID), p.Server, p.Message
	case "item/tool/requestUserInput":
		r.Kind, r.Options = agency.AsksQuestion, []string{}
		var texts []string
		for _, q := range p.Questions {
			texts = append(texts, q.Question)
			for _, o := range q.Options {
				r.Options = append(r.Options, o.Label)
			}
		}
		r.Text = strings.Join(texts, "\n")
	default:
		return nil
	}
	r.Input, _ = json.Marshal(back) // of what came as JSON
	return []protocol.Event{{Kind: protocol.Asked, ID: r.ID, Request: r}}
}

// requested is the part of a request that an answer needs.
type requested struct {
	ID          json.RawMessage `json:"id"`
	Method      string          `json:"method"`
	Questions   []question      `json:"questions,omitempty"`
	Permissions json.RawMessage `json:"permissions,omitempty"`
}

// hello begins the conversation in the working directory, or resumes one, and asks for the models. Codex
// reads in order, so nothing needs to wait for a reply. Its settings belong to what Codex calls its
// experimental interface.
func hello(at protocol.Place, id string) []byte {
	begin := map[string]any{"id": id, "method": "thread/start", "params": map[string]any{}}
	if at.Conversation != "" {
		begin = map[string]any{"id": id, "method": "thread/resume", "params": map[string]any{"threadId": at.Conversation, "excludeTurns": true}}
	}
	return jsonrpc.Encode(
		map[string]any{"id": id + "-initialize", "method": "initialize", "params": map[string]any{
			"clientInfo": map[string]any{"name": "agency", "version": "1"}, "capabilities": map[string]any{"experimentalApi": true},
		}},
		map[string]any{"method": "initialized"},
		begin,
		map[string]any{"id": id + "-models", "method": "model/list", "params": map[string]any{}},
	)
}

// sayMessage returns a message that begins a turn, or that Codex takes into the current one.
func sayMessage(at protocol.Place, id, text string, files []string) []byte {
	input := []any{map[string]any{"type": "text", "text": text}}
	for _, path := range files {
		if protocol.ImageType(path) != "" { // its tools read other files
			input = append(input, map[string]any{"type": "localImage", "path": path})
		}
	}
	return jsonrpc.Encode(map[string]any{"id": id, "method": "turn/start", "params": map[string]any{
		"threadId": at.Conversation, "clientUserMessageId": id, "input": input,
	}})
}

func sayInterrupt(at protocol.Place, id string) []byte {
	return jsonrpc.Encode(map[string]any{"id": id, "method": "turn/interrupt", "params": map[string]any{"threadId": at.Conversation, "turnId": at.Turn}})
}

// sayLook asks for the conversation without its turns.
func sayLook(at protocol.Place, id string) []byte {
	return jsonrpc.Encode(map[string]any{"id": id, "method": "thread/read", "params": map[string]any{"threadId": at.Conversation}})
}

func refuse(id, method string) []byte { return jsonrpc.Encode(jsonrpc.NotFound(id, method)) }

// replyTo returns the answer to a request. Codex ends the request even for an answer that it does not
// know, so replyTo returns only answers that Codex offers.
func replyTo(r *protocol.Request, reply agency.Reply) ([]byte, error) {
	var to requested
	if err := json.Unmarshal(r.Input, &to); err != nil {
		return nil, agency.Errorf(agency.CodeInputRefused, "its request cannot be read: %w", err)
	}
	allow := reply.Decision == agency.Allow
	var result map[string]any
	switch {
	case r.Kind == agency.AsksQuestion && reply.Decision == agency.Deny:
		answers := map[string]any{}
		for _, q := range to.Questions {
			answers[q.ID] = map[string]any{"answers": []string{}}
		}
		result = map[string]any{"answers": answers}
	case r.Kind == agency.AsksQuestion:
		answers, err := to.answers(reply.Text)
		if err != nil {
			return nil, err
		}
		result = map[string]any{"answers": answers}
	case to.Method == "item/permissions/requestApproval":
		result = map[string]any{"permissions": map[string]any{}, "scope": "turn"}
		if allow {
			result["permissions"] = to.Permissions
		}
	case to.Method == "mcpServer/elicitation/request":
		result = map[string]any{"action": "decline"}
		if allow {
			result = map[string]any{"action": "accept", "content": map[string]any{}}
		}
	default:
		result = map[string]any{"decision": "decline"} // which lets the turn continue
		if allow {
			result["decision"] = "accept"
		}
	}
	return jsonrpc.Encode(map[string]any{"id": to.ID, "result": result}), nil
}

// answers returns the answers to questions, in order, with ";" between them.
func (r *requested) answers(text string) (map[string]any, error) {
	texts := []string{text}
	if len(r.Questions) > 1 {
		texts = strings.Split(text, ";")
	}
	if len(texts) != len(r.Questions) {
		return nil, agency.Errorf(agency.CodeUsage, "it asks %d questions, and the answer has %d parts", len(r.Questions), len(texts)).
			WithHint(`answer each, with ";" between: "Red; the second one"`)
	}
	answers := map[string]any{}
	for i, q := range r.Questions {
		text := strings.TrimSpace(texts[i])
		for _, o := range q.Options {
			if strings.EqualFold(o.Label, text) {
				text = o.Label
			}
		}
		answers[q.ID] = map[string]any{"answers": []string{text}}
	}
	return answers, nil
}
