// Package acp speaks the Agent Client Protocol, version 1, with the agents that have it: JSON-RPC 2.0
// on their standard input and output, one message a line (https://agentclientprotocol.com).
//
// The protocol does not acknowledge messages, answers or interruptions. So agency writes a request for a
// method that no agent has after each of them. An agent reads in order, so its refusal of this request
// shows that it has read what came before.
package acp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"agency"
	"agency/internal/harness/agent"
	"agency/internal/harness/jsonrpc"
	"agency/internal/protocol"
)

// Dialect is the protocol. An agent takes one message at a time: a message in a turn would end it.
var Dialect = protocol.Dialect{
	Name: "the Agent Client Protocol", Hello: hello, Read: reader.Read, Message: sayMessage, Interrupt: sayInterrupt, Look: sayLook, Answer: replyTo, Refuse: refuse,
	OneAtATime: true, Replays: true, Set: saySetting,
}

// Command returns the command of a program that speaks the protocol with these arguments. The agent
// makes the ids of its conversations. To resume one, agency asks the agent to load it.
func Command(r agency.CommandRequest, args []string, opening string) agency.Command {
	c := agency.Command{Argv: args, Opening: opening}
	if r.Resume {
		c.ConversationID = r.ConversationID
	}
	return c
}

// The beginnings of the ids of agency's requests. They tell what the reply to a request shows.
const (
	readMessage  = "read:"      // the agent has read the message
	readAnswer   = "answered:"  // it has read the answer to its request
	readCancel   = "withdrawn:" // it has read that its request is cancelled
	readLook     = "look:"
	setting      = "set:" // this request itself changes a setting
	initializing = "initialize:"
)

// noMethod is a method that no agent has. The names of extensions begin with an underscore.
const noMethod = "_agency/read"

type message = jsonrpc.Message[params, result, failure]

type params struct {
	Session string   `json:"sessionId"`
	Update  update   `json:"update"`
	Call    toolCall `json:"toolCall"`
	Options []option `json:"options"`
}

type failure struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    struct {
		Details string `json:"details"`
		Message string `json:"message"`
	} `json:"data"`
}

// words returns the message of an error, with the details that some agents put beside it.
func (f *failure) words() string {
	if more := cmp.Or(f.Data.Details, f.Data.Message); more != "" {
		return f.Message + ": " + more
	}
	return f.Message
}

type result struct {
	Session string `json:"sessionId"`
	listed
	Stop  string `json:"stopReason"`
	Usage *struct {
		Input  *int64 `json:"inputTokens"`
		Cached *int64 `json:"cachedReadTokens"`
		Output *int64 `json:"outputTokens"`
	} `json:"usage"`
	Meta struct {
		Quota struct {
			Tokens struct { // of this turn, by Gemini CLI
				Input  *int64 `json:"input_tokens"`
				Output *int64 `json:"output_tokens"`
			} `json:"token_count"`
		} `json:"quota"`
	} `json:"_meta"`
}

type update struct {
	Kind    string          `json:"sessionUpdate"`
	Content json.RawMessage `json:"content"` // one block of a message, or several of a tool call
	Entries []entry         `json:"entries"` // of a plan
	Mode    string          `json:"currentModeId"`
	listed
	toolCall
}

// entry is one step of an agent's work.
type entry struct {
	Content string           `json:"content"`
	Status  agency.TodoState `json:"status"` // with the words of agency
}

type toolCall struct {
	ID     string          `json:"toolCallId"`
	Title  string          `json:"title"`
	Kind   string          `json:"kind"`
	Status string          `json:"status"`
	Input  json.RawMessage `json:"rawInput"`
}

type option struct {
	ID   string `json:"optionId"`
	Kind string `json:"kind"`
}

var reader = jsonrpc.Reader[params, result, failure]{
	Reply: reply, Request: asked, Notification: notified, Thread: func(p *params) string { return p.Session },
}

func notified(m *message) []protocol.Event {
	if m.Method != "session/update" {
		return []protocol.Event{{Kind: protocol.Unknown}}
	}
	return m.Params.Update.events()
}

// reply reads the reply to a request of agency.
func reply(m *message) []protocol.Event {
	id := m.OurID()
	for begin, kinds := range map[string][]protocol.Kind{
		readMessage: {protocol.Taken, protocol.Begun, protocol.Working}, readAnswer: {protocol.Answered}, readCancel: {protocol.Withdrawn}, readLook: {protocol.Replied}, initializing: nil,
	} {
		if of, ok := strings.CutPrefix(id, begin); ok {
			events := make([]protocol.Event, len(kinds))
			for i, kind := range kinds {
				events[i] = protocol.Event{Kind: kind, ID: of}
			}
			return events
		}
	}
	if of, ok := strings.CutPrefix(id, setting); ok {
		e := protocol.Event{Kind: protocol.Replied, ID: of}
		if m.Error != nil {
			e.Failed, e.Text = true, m.Error.words()
		}
		return []protocol.Event{e}
	}
	switch r := &m.Result; {
	case id == protocol.Hello().ID && m.Error != nil:
		return []protocol.Event{{Kind: protocol.Replied, ID: id, Failed: true, Text: m.Error.words()}}
	case id == protocol.Hello().ID:
		return []protocol.Event{{Kind: protocol.Session, Conversation: r.Session, Settings: r.settings()}, {Kind: protocol.Replied, ID: id}}
	case m.Error != nil:
		words := m.Error.words()
		return ofTurn(id, protocol.Event{Kind: protocol.Ended, Failed: true, Text: words, Class: errorClass(m.Error.Code, words)})
	case r.Stop != "":
		return append(r.used(id), ofTurn(id, r.ended())...)
	default:
		return []protocol.Event{{Kind: protocol.Unknown}}
	}
}

// ofTurn returns what the reply to a message shows. It may come before the refusal that shows that the
// agent has read the message.
func ofTurn(id string, ended protocol.Event) []protocol.Event {
	ended.ID = id
	return []protocol.Event{{Kind: protocol.Begun, ID: id}, ended, {Kind: protocol.Resting, ID: id}, {Kind: protocol.Done, ID: id}}
}

// used returns the tokens of a conversation, or those of its last turn. Agents count differently,
// and leave out subagents, so they are a lower bound.
func (r *result) used(id string) []protocol.Event {
	turn := &r.Meta.Quota.Tokens
	switch {
	case r.Usage != nil:
		usage := agency.Usage{InputTokens: r.Usage.Input, CachedTokens: r.Usage.Cached, OutputTokens: r.Usage.Output, Estimated: true}
		return []protocol.Event{{Kind: protocol.Used, Usage: &usage}}
	case turn.Input != nil:
		return []protocol.Event{{Kind: protocol.Used, ID: id, Add: true, Usage: &agency.Usage{InputTokens: turn.Input, OutputTokens: turn.Output, Estimated: true}}}
	default:
		return nil
	}
}

func (r *result) ended() protocol.Event {
	e := protocol.Event{Kind: protocol.Ended}
	switch r.Stop {
	case "cancelled":
		e.Interrupted = true
	case "max_tokens":
		e.Failed, e.Class, e.Text = true, agency.ErrorContext, "the model reached its limit of tokens"
	case "max_turn_requests":
		e.Failed, e.Class, e.Text = true, agency.ErrorOther, "the turn reached its limit of calls of the model"
	case "refusal":
		e.Failed, e.Class, e.Text = true, agency.ErrorOther, "the model refused to continue"
	}
	return e
}

// authRequired is the code of an agent without a login.
const authRequired = -32000

// errorClass returns the class of an error by its words; the protocol has no codes for most.
func errorClass(code int, words string) agency.ErrorClass {
	mentions := agent.Mentions(words)
	switch {
	case code == authRequired, mentions("unauthorized", "api key", "authentication", "401"):
		return agency.ErrorAuth
	case mentions("rate limit", "quota", "too many requests", "429", "resource_exhausted"):
		return agency.ErrorRateLimit
	case mentions("overloaded", "unavailable", "503", "529"):
		return agency.ErrorOverloaded
	case mentions("context window", "context length", "prompt is too long", "token count"):
		return agency.ErrorContext
	default:
		return agency.ErrorOther
	}
}

// events reads what an agent said or did.
func (u *update) events() []protocol.Event {
	switch u.Kind {
	case "agent_message_chunk":
		return []protocol.Event{{Kind: protocol.Part, Text: text(u.Content)}}
	case "tool_call":
		return u.begun()
	case "tool_call_update":
		if u.Status == "completed" || u.Status == "failed" {
			return []protocol.Event{{Kind: protocol.ToolEnded, ID: u.ID, Text: text(u.Content), Failed: u.Status == "failed"}}
		}
		return u.begun()
	case "plan":
		return []protocol.Event{planned(u.Entries)}
	case "current_mode_update":
		return []protocol.Event{{Kind: protocol.Session, Settings: agency.Settings{PermissionMode: u.Mode}}}
	case "config_option_update":
		return []protocol.Event{{Kind: protocol.Session, Settings: u.settings()}}
	case "":
		return []protocol.Event{{Kind: protocol.Unknown}}
	default:
		return nil // a thought, tokens: nothing about the turn
	}
}

// begun reads a tool call. Some agents, such as OpenCode, tell the list of their work by a tool alone,
// which takes todos.
func (c *toolCall) begun() []protocol.Event {
	events := []protocol.Event{{Kind: protocol.Tool, ID: c.ID, Tool: c.tool(), Text: c.text()}}
	var input struct {
		Todos []entry `json:"todos"`
	}
	if len(c.Input) > 0 && agent.Lenient(c.Input, &input) && len(input.Todos) > 0 && input.Todos[0].Content != "" {
		events = append(events, planned(input.Todos))
	}
	return events
}

// planned returns the whole list of an agent's work.
func planned(entries []entry) protocol.Event {
	e := protocol.Event{Kind: protocol.Planned, Whole: true}
	for _, one := range entries {
		e.Todos = append(e.Todos, protocol.Todo{Text: one.Content, State: one.Status})
	}
	return e
}

// tool returns the kind of the tool that is called, since the protocol has no names of tools.
func (c *toolCall) tool() string {
	if c.Kind == "execute" {
		return "shell"
	}
	return cmp.Or(c.Kind, "tool")
}

func (c *toolCall) text() string { return cmp.Or(agent.ToolText(c.Input), c.Title) }

// text returns the texts in a block of content, or in a list of them.
func text(content json.RawMessage) string {
	type block struct {
		Type    string          `json:"type"`
		Text    string          `json:"text"`
		Content json.RawMessage `json:"content"`
	}
	var all []block
	if json.Unmarshal(content, &all) != nil {
		all = make([]block, 1)
		agent.Lenient(content, &all[0])
	}
	var texts []string
	for _, b := range all {
		switch b.Type {
		case "text":
			texts = append(texts, b.Text)
		case "content":
			var inner block
			if agent.Lenient(b.Content, &inner) && inner.Type == "text" {
				texts = append(texts, inner.Text)
			}
		}
	}
	return strings.Join(texts, "\n")
}

// asked reads a request for permission. Each process of the agent counts its requests from the beginning,
// so the id for agency has the id of the tool call before the number.
func asked(m *message) []protocol.Event {
	call := &m.Params.Call
	input, err := json.Marshal(requested{ID: m.ID, Options: m.Params.Options})
	if err != nil || m.Method != "session/request_permission" {
		return nil
	}
	id := fmt.Sprintf("%s.%s", call.ID, m.ID)
	return []protocol.Event{{Kind: protocol.Asked, ID: id, Request: &protocol.Request{
		ID: id, Kind: agency.AsksPermission, Tool: call.tool(), Text: call.text(), Call: call.ID, Input: input,
	}}}
}

// requested is the part of a request that an answer needs.
type requested struct {
	ID      json.RawMessage `json:"id"`
	Options []option        `json:"options"`
}

// hello begins a session in the worktree, or loads one. The agent reads in order, so nothing needs to
// wait for a reply.
func hello(at protocol.Place, id string) []byte {
	session := map[string]any{"cwd": at.Dir, "mcpServers": []any{}}
	method := "session/new"
	if at.Conversation != "" {
		method, session["sessionId"] = "session/load", at.Conversation
	}
	return encode(
		map[string]any{"id": initializing + id, "method": "initialize", "params": map[string]any{
			"protocolVersion": 1, "clientCapabilities": map[string]any{}, "clientInfo": map[string]any{"name": "agency", "version": "1"},
		}},
		map[string]any{"id": id, "method": method, "params": session},
	)
}

// marker returns the request that agency writes after a frame.
func marker(id string) map[string]any {
	return map[string]any{"id": id, "method": noMethod, "params": map[string]any{}}
}

func sayMessage(at protocol.Place, id, text string, files []string) []byte {
	prompt := []any{map[string]any{"type": "text", "text": text}}
	for _, path := range files {
		uri := url.URL{Scheme: "file", Path: path}
		link := map[string]any{"type": "resource_link", "uri": uri.String(), "name": filepath.Base(path)}
		if kind := protocol.ImageType(path); kind != "" {
			link["mimeType"] = kind
		}
		prompt = append(prompt, link)
	}
	return encode(map[string]any{"id": id, "method": "session/prompt", "params": map[string]any{
		"sessionId": at.Conversation, "prompt": prompt,
	}}, marker(readMessage+id))
}

// sayInterrupt cancels the turn, and every open request first, as the protocol demands of a client.
func sayInterrupt(at protocol.Place, id string) []byte {
	var frames []map[string]any
	for _, r := range at.Open {
		var of requested
		if json.Unmarshal(r.Input, &of) != nil {
			continue
		}
		frames = append(frames, map[string]any{"id": of.ID, "result": map[string]any{"outcome": map[string]any{"outcome": "cancelled"}}}, marker(readCancel+r.ID))
	}
	return encode(append(frames, map[string]any{"method": "session/cancel", "params": map[string]any{"sessionId": at.Conversation}}, marker(readLook+id))...)
}

func sayLook(_ protocol.Place, id string) []byte { return encode(marker(readLook + id)) }

// replyTo returns the answer to a request: the option that allows or refuses it this time.
func replyTo(r *protocol.Request, reply agency.Reply) ([]byte, error) {
	var to requested
	if err := json.Unmarshal(r.Input, &to); err != nil {
		return nil, agency.Errorf(agency.CodeInputRefused, "its request cannot be read: %w", err)
	}
	kind := "allow_once"
	if reply.Decision == agency.Deny {
		kind = "reject_once"
	}
	i := slices.IndexFunc(to.Options, func(o option) bool { return o.Kind == kind })
	if i < 0 {
		return nil, agency.Errorf(agency.CodeInputRefused, "its agent does not offer to %s this once", cmp.Or(string(reply.Decision), "answer")).
			WithHint("agency interrupt ends the turn, and with it the request")
	}
	outcome := map[string]any{"outcome": "selected", "optionId": to.Options[i].ID}
	return encode(map[string]any{"id": to.ID, "result": map[string]any{"outcome": outcome}}, marker(readAnswer+r.ID)), nil
}

func refuse(id, method string) []byte { return encode(jsonrpc.NotFound(id, method)) }

// encode returns messages with their version, each of which is one line.
func encode(messages ...map[string]any) []byte {
	for _, m := range messages {
		m["jsonrpc"] = "2.0"
	}
	return jsonrpc.Encode(messages...)
}
