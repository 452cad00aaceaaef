package codex

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"agency"
	"agency/internal/protocol"
)

// guests is how Codex's terminal joins: codex resume --remote speaks the protocol of codex app-server,
// one message in each text frame of a WebSocket.
var guests = protocol.Guests{Hear: hearGuest, Audience: audienceOf, Reply: replyGuest, Refuse: refuseGuest}

// join returns the arguments of a terminal that joins a conversation at a socket.
func join(socket, conversation string) []string {
	return []string{"resume", "--remote", "unix://" + socket, conversation}
}

// guestPrefix begins the ids of the requests of guests: their replies say nothing about what agency
// asked.
const guestPrefix = "guest-"

// greeting is what codex app-server says about itself, only once. So guests get it from agency.
type greeting struct {
	UserAgent string `json:"userAgent"`
	Home      string `json:"codexHome"`
	Family    string `json:"platformFamily"`
	System    string `json:"platformOs"`
}

// frame is a message whose parts stay as they are.
type frame map[string]json.RawMessage

func (f frame) method() (m string) {
	_ = json.Unmarshal(f["method"], &m)
	return m
}

// with returns the frame on one line, with one part added or replaced.
func (f frame) with(name string, value any) []byte {
	part, _ := json.Marshal(value) // of what came as JSON, or of texts
	next := frame{name: part}
	for key, old := range f {
		if key != name {
			next[key] = old
		}
	}
	data, _ := json.Marshal(next)
	return data
}

// guestParams are the parameters of a guest's request that matter to agency.
type guestParams struct {
	Thread    string `json:"threadId"`
	Ephemeral bool   `json:"ephemeral"`
	Client    string `json:"clientUserMessageId"`
	Input     []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"input"`
}

// away are the requests that take a conversation away from agency.
var away = []string{"thread/archive", "thread/delete", "thread/unarchive"}

func hearGuest(at protocol.Place, greets json.RawMessage, id string, data []byte) (protocol.GuestFrame, error) {
	var f frame
	if err := json.Unmarshal(data, &f); err != nil {
		return protocol.GuestFrame{}, err
	}
	method, request := f.method(), f["id"]
	switch {
	case method == "" && request == nil:
		return protocol.GuestFrame{}, errors.New("it is no message")
	case method == "":
		return guestAnswer(f), nil
	case request == nil:
		return protocol.GuestFrame{}, nil // the guest is initialized; agency has told Codex that before
	}
	var p guestParams
	_ = json.Unmarshal(f["params"], &p)
	ours := p.Thread == at.Conversation
	reply := func(result any) (protocol.GuestFrame, error) {
		return protocol.GuestFrame{Reply: frame{"id": request}.with("result", result)}, nil
	}
	out := protocol.GuestFrame{Saying: agency.Saying{Kind: protocol.SaysGuest, ID: id, Text: method}, Frame: f.with("id", id), Request: request}
	switch {
	case method == "initialize":
		return reply(greets)
	case method == "thread/unsubscribe" && ours: // the program would tell agency nothing more
		return reply(map[string]any{"status": "unsubscribed"})
	case (method == "thread/start" || method == "thread/fork") && !p.Ephemeral,
		method == "thread/resume" && !ours, ours && slices.Contains(away, method):
		return protocol.GuestFrame{Reply: refuseGuest(request, "agency leads this conversation, and this terminal stays in it; agency run begins another one")}, nil
	case method == "thread/resume":
		out.Joins = true
	case method == "turn/interrupt" && ours:
		out.Saying.Kind, out.Saying.Text = agency.SaysInterrupt, ""
	case (method == "turn/start" || method == "turn/steer") && ours:
		return guestMessage(out, f, &p), nil
	}
	return out, nil
}

// guestMessage reads a message. It keeps the id that the terminal gave it: Codex names that id when it
// begins with the message.
func guestMessage(out protocol.GuestFrame, f frame, p *guestParams) protocol.GuestFrame {
	params := frame{}
	_ = json.Unmarshal(f["params"], &params)
	if isID(p.Client) {
		out.Saying.ID = p.Client
	}
	f["params"] = params.with("clientUserMessageId", out.Saying.ID)
	out.Frame = f.with("id", out.Saying.ID)
	texts := make([]string, 0, len(p.Input))
	for _, part := range p.Input {
		if part.Type != "text" {
			part.Text = "[" + part.Type + "]"
		}
		texts = append(texts, part.Text)
	}
	out.Saying.Kind, out.Saying.Text = agency.SaysMessage, strings.Join(texts, "\n")
	return out
}

// isID reports whether a text has the form of a UUID: a guest must not choose an id of agency's own.
func isID(s string) bool {
	return len(s) == 36 && strings.Count(s, "-") == 4 && strings.Trim(s, "0123456789abcdef-") == ""
}

// guestAnswer reads the answer to a request of the program. An answer that is an error leaves the request
// open, so that it can be answered through agency.
func guestAnswer(f frame) protocol.GuestFrame {
	var result struct {
		Decision json.RawMessage `json:"decision"`
		Action   string          `json:"action"`
		Answers  map[string]struct {
			Answers []string `json:"answers"`
		} `json:"answers"`
		Permissions map[string]json.RawMessage `json:"permissions"`
	}
	if f["result"] == nil || json.Unmarshal(f["result"], &result) != nil {
		return protocol.GuestFrame{}
	}
	s := agency.Saying{Kind: agency.SaysAnswer, ID: string(f["id"]), Decision: agency.Deny}
	decision, _, _ := strings.Cut(strings.TrimLeft(string(result.Decision), `{"`), `"`) // its name, also of one with more in it
	switch {
	case result.Answers != nil:
		s.Decision = ""
		var texts []string
		for _, id := range slices.Sorted(maps.Keys(result.Answers)) {
			texts = append(texts, result.Answers[id].Answers...)
		}
		s.Answer = strings.Join(texts, "; ")
	case decision == "accept", result.Action == "accept", len(result.Permissions) > 0:
		s.Decision = agency.Allow
	case decision == "decline", result.Action != "", result.Permissions != nil:
	case strings.HasPrefix(decision, "accept"): // and more like it
		s.Decision, s.Answer = agency.Allow, decision
	case decision != "":
		s.Answer = decision
	default:
		return protocol.GuestFrame{} // Codex would take it as the end of the request, and fail the call
	}
	return protocol.GuestFrame{Saying: s, Frame: frame{"id": f["id"]}.with("result", f["result"]), Answers: string(f["id"])}
}

// known are the requests of the program that a guest may answer: agency refuses all others.
var known = []string{
	"item/commandExecution/requestApproval", "item/fileChange/requestApproval", "item/permissions/requestApproval",
	"mcpServer/elicitation/request", "item/tool/requestUserInput",
}

func audienceOf(line []byte) protocol.Audience {
	var m struct {
		Method string          `json:"method"`
		ID     json.RawMessage `json:"id"`
		Params struct {
			Request json.RawMessage `json:"requestId"`
		} `json:"params"`
	}
	switch err := json.Unmarshal(line, &m); {
	case err != nil:
		return protocol.Audience{Private: true}
	case m.Method == "":
		var id string
		_ = json.Unmarshal(m.ID, &id)
		return protocol.Audience{Replies: id, Private: id == ""}
	case m.ID == nil && m.Method == "serverRequest/resolved":
		return protocol.Audience{Over: string(m.Params.Request)}
	case m.ID == nil:
		return protocol.Audience{}
	default:
		return protocol.Audience{Asks: string(m.ID), Private: !slices.Contains(known, m.Method)}
	}
}

func replyGuest(line []byte, request json.RawMessage) []byte {
	var f frame
	_ = json.Unmarshal(line, &f)
	return f.with("id", request)
}

// refused is the code of the error for a request that agency does not pass on.
const refused = -32600

func refuseGuest(request json.RawMessage, why string) []byte {
	return frame{"id": request}.with("error", map[string]any{"code": refused, "message": why})
}

// repliedGuest reads the reply to a request of a guest: only a conversation that it began matters.
func (r *result) repliedGuest() []protocol.Event {
	if !r.Thread.Ephemeral {
		return nil
	}
	return []protocol.Event{{Kind: protocol.Beside, Thread: r.Thread.ID}}
}
