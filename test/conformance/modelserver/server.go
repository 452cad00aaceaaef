// Package modelserver is a scripted model on loopback. It implements the Anthropic Messages, the
// OpenAI Responses and Chat Completions and the Gemini API as far as the agents of the tests need
// them.
package modelserver

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
)

// Server is one scripted model. All its clients are in the same scenario.
type Server struct {
	URL string // http://127.0.0.1:PORT

	scenario Scenario
	http     *httptest.Server

	mu      sync.Mutex
	held    chan struct{} // holds back the first turn until it is closed; nil holds nothing
	failed  map[int]int   // how often each turn was refused
	log     []Request
	changed chan struct{} // closed and replaced with every new entry of the log
}

// Request is one HTTP request as the server understood it.
type Request struct {
	Method, Path string
	// Side is true for a request outside the conversation, such as one for a title: it got a short
	// answer and no turn.
	Side     bool
	Turn     int    // the turn of the scenario that answered it, from 0
	Subagent string // the prompt of the subagent whose conversation it is; empty for the agent's own
	Body     string // unchanged, for a conversation
	Heard    string // all texts of the user, including the client's own additions, one below the other
}

// Start starts a server on a free port. The caller closes it.
func Start(scenario Scenario) *Server {
	s := &Server{scenario: scenario, changed: make(chan struct{}), failed: map[int]int{}}
	mux := http.NewServeMux()
	mux.Handle("POST /v1/messages", s.converse(messages{}))
	mux.Handle("POST /v1/responses", s.converse(responses{}))
	mux.Handle("POST /v1/chat/completions", s.converse(chat{}))
	mux.HandleFunc("POST /v1beta/models/{call}", s.generate)
	mux.HandleFunc("POST /v1/messages/count_tokens", s.countTokens)
	mux.HandleFunc("/", s.unknown)
	s.http = httptest.NewServer(mux)
	s.URL = s.http.URL
	return s
}

// HoldFirst holds back each answer of the first turn, a refusal too, until the caller calls
// release. It must be called before the agent asks.
func (s *Server) HoldFirst() (release func()) {
	held := make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = held
	return sync.OnceFunc(func() { close(held) })
}

// Close ends the server; requests that wait at a gate fail.
func (s *Server) Close() {
	s.http.CloseClientConnections()
	s.http.Close()
}

// Requests returns all requests so far, oldest first.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

// Await returns the first request that the caller wants, past or future. It fails when ctx ends
// before there is one.
func (s *Server) Await(ctx context.Context, wanted func(Request) bool) (Request, error) {
	for {
		s.mu.Lock()
		log, changed := s.log, s.changed
		s.mu.Unlock()
		if i := slices.IndexFunc(log, wanted); i >= 0 {
			return log[i], nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Request{}, fmt.Errorf("await one more request after %d: %w", len(log), ctx.Err())
		}
	}
}

func (s *Server) record(r Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, r)
	close(s.changed)
	s.changed = make(chan struct{})
}

// dialect is one of the APIs.
type dialect interface {
	parse(body []byte) (*conversation, error)
	// answer sends a turn; hold returns when the turn's gate is open, or with an error when the
	// client has gone.
	answer(w http.ResponseWriter, c *conversation, text string, made *call, hold func() error) error
}

// conversation is the content of a request, independent of the API.
type conversation struct {
	model  string
	stream bool
	heard  []string // the texts of the user
	turns  int      // turns of the model so far
	tools  map[string]tool
	cut    bool            // the answer is cut off
	output int             // tokens of the whole answer; only the Messages API tells them
	format json.RawMessage // a JSON schema that the answer must follow
}

// side reports whether the request is outside the agent's conversation: agents offer tools.
func (c *conversation) side() bool {
	return len(c.tools) == 0 || (len(c.tools) == 1 && c.format != nil)
}

func (s *Server) converse(d dialect) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client went away
		}
		c, err := d.parse(body)
		if err != nil {
			s.record(Request{Method: r.Method, Path: r.URL.Path, Side: true})
			refuse(w, http.StatusBadRequest, "unreadable request: "+err.Error())
			return
		}
		entry := Request{
			Method: r.Method, Path: r.URL.Path,
			Side: c.side(), Turn: c.turns, Heard: strings.Join(c.heard, "\n"), Body: string(body),
		}
		scenario := s.scenario
		if subagent := scenario.of(c.heard); subagent != nil {
			scenario, entry.Subagent = subagent.Scenario, subagent.Prompt
		}
		turn := scenario.turn(c.turns)
		if entry.Side {
			turn, entry.Turn = Turn{Text: shortAnswer(c.format)}, 0
		}
		s.record(entry)
		gates := []<-chan struct{}{turn.Gate}
		if !entry.Side && entry.Subagent == "" && entry.Turn == 0 {
			gates = append(gates, s.first())
		}
		if turn.Status != 0 && s.fails(entry.Turn, turn.Failure) {
			if open(r.Context(), gates...) != nil {
				return // the client went away
			}
			turn.Failure.announce(w)
			refuse(w, turn.Status, cmp.Or(turn.Failure.Message, "scripted error"))
			return
		}
		c.cut, c.output = turn.Cut, turn.Output
		made, err := turn.call(c.tools)
		if err != nil {
			refuse(w, http.StatusBadRequest, err.Error())
			return
		}
		// An error here means that the client has gone.
		_ = d.answer(w, c, turn.Text, made, func() error {
			return open(r.Context(), gates...)
		})
	}
}

// first returns the gate of the first turn, nil when nothing holds it.
func (s *Server) first() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held
}

// open waits until all gates are open; a nil gate counts as open. It fails when ctx ends before
// that.
func open(ctx context.Context, gates ...<-chan struct{}) error {
	for _, gate := range gates {
		if gate == nil {
			continue
		}
		select {
		case <-gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// shortAnswer returns an answer outside the conversation: some text for every key that the schema
// requires.
func shortAnswer(schema json.RawMessage) string {
	const text = "Scripted answer"
	if schema == nil {
		return text
	}
	var wanted struct {
		Properties map[string]any `json:"properties"`
	}
	_ = json.Unmarshal(schema, &wanted)
	answer := object{}
	for key := range wanted.Properties {
		answer[key] = text
	}
	data, _ := json.Marshal(answer)
	return string(data)
}

func (s *Server) countTokens(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.record(Request{Method: r.Method, Path: r.URL.Path, Side: true})
	reply(w, http.StatusOK, object{"input_tokens": 1 + len(body)/4})
}

func (s *Server) unknown(w http.ResponseWriter, r *http.Request) {
	s.record(Request{Method: r.Method, Path: r.URL.Path, Side: true})
	refuse(w, http.StatusNotFound, "no such path")
}

// object is a JSON object.
type object = map[string]any

// refuse sends an error in a form that fits both APIs.
func refuse(w http.ResponseWriter, status int, message string) {
	kinds := map[int]string{
		http.StatusBadRequest: "invalid_request_error", http.StatusUnauthorized: "authentication_error",
		http.StatusNotFound: "not_found_error", http.StatusTooManyRequests: "rate_limit_error", 529: "overloaded_error",
	}
	kind := kinds[status]
	if kind == "" {
		kind = "api_error"
	}
	reply(w, status, object{"type": "error", "error": object{"type": kind, "code": kind, "message": message}})
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// events is a stream of server-sent events. After the first error it sends nothing more.
type events struct {
	w   http.ResponseWriter
	err error
}

func newEvents(w http.ResponseWriter) *events {
	w.Header().Set("Content-Type", "text/event-stream")
	return &events{w: w}
}

// send sends an event; it contains the kind twice, as in both APIs.
func (e *events) send(kind string, fields object) {
	if e.err != nil {
		return
	}
	fields["type"] = kind
	data, err := json.Marshal(fields)
	if err == nil {
		_, err = fmt.Fprintf(e.w, "event: %s\ndata: %s\n\n", kind, data)
	}
	if err == nil {
		err = http.NewResponseController(e.w).Flush()
	}
	e.err = err
}
