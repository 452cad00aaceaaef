package copilot

import (
	"bytes"
	"cmp"
	"encoding/json"
	"path/filepath"
	"strings"
	"time"

	"agency"
	"agency/internal/harness/agent"
)

// events is the name of the file in which Copilot writes the events of a conversation.
const events = "events.jsonl"

// files returns the file of the conversation, whose path the attempt knows from its start.
func files(s *agency.AgentState, _ *agency.Process) []string {
	if !filepath.IsAbs(s.Transcript) || filepath.Base(s.Transcript) != events {
		return nil
	}
	return []string{s.Transcript}
}

// event is a line of the file, as far as agency reads it.
type event struct {
	Type  string `json:"type"`
	Agent string `json:"agentId"` // of a subagent
	At    string `json:"timestamp"`
	Data  struct {
		Content  string            `json:"content"`
		Requests []json.RawMessage `json:"toolRequests"`

		// Fields of a call of a tool.
		CallID    string          `json:"toolCallId"`
		Tool      string          `json:"toolName"`
		Arguments json.RawMessage `json:"arguments"`

		// Fields of a permission.
		RequestID  string     `json:"requestId"`
		ByHook     bool       `json:"resolvedByHook"`
		Permission permission `json:"permissionRequest"`

		// Fields of an error.
		Class   string `json:"errorType"`
		Status  int    `json:"statusCode"`
		Message string `json:"message"`

		Usage *usage `json:"usage"`
	} `json:"data"`
}

// permission is what a request for permission is about.
type permission struct {
	Kind    string `json:"kind"`
	Command string `json:"fullCommandText"`
	File    string `json:"fileName"`
	Path    string `json:"path"`
	URL     string `json:"url"`
	Server  string `json:"serverName"`
	Tool    string `json:"toolName"`
	About   string `json:"intention"`
}

func (p *permission) text() string {
	for _, text := range []string{p.Command, p.File, p.Path, p.URL, p.Tool, p.About} {
		if text != "" {
			return text
		}
	}
	return p.Kind
}

// usage is the usage of one call of the model. Its input includes cache reads and writes.
type usage struct {
	Model   string `json:"model"`
	Input   int64  `json:"inputTokens"`
	Output  int64  `json:"outputTokens"`
	Read    int64  `json:"cacheReadTokens"`
	Written int64  `json:"cacheWriteTokens"`
}

func (u *usage) total() *agency.Usage {
	return agency.NewUsage(agency.ModelUsage{
		Model: u.Model, Input: max(0, u.Input-u.Read-u.Written), CacheRead: u.Read, CacheWrite5m: u.Written, Output: u.Output,
	})
}

// asks is the tool by which the agent asks the user.
const asks = "ask_user"

// reader reads lines of the file, one after the other.
type reader struct {
	begun   bool // the attempt's first prompt was seen: before it the program may still show a dialog
	working bool
	model   string
	last    string // the text of its newest answer, when it called no tool: the end of its turn ends the work
	ended   bool   // its newest answer called no tool
}

// The names of the evidence that only records how far the file was read, and what the next read
// needs.
const (
	readOn   = "read"
	readLast = "read, the last answer"
)

// heardAt returns the time of the newest evidence that is not a report: a prompt that is read late is
// older than the report that followed it.
func heardAt(s *agency.AgentState) time.Time {
	var newest time.Time
	for source, seen := range s.Sources {
		if source != agency.FromReport && seen.At.After(newest) {
			newest = seen.At
		}
	}
	return newest
}

// readFile reads what was added to the file.
func readFile(path string, s *agency.AgentState) []agency.Evidence {
	lines, next := agent.Tail(path, s.TranscriptOffset)
	if next == s.TranscriptOffset {
		return nil
	}
	before := s.Sources[agency.FromTranscript].Event
	r := reader{begun: s.Sources[agency.FromSession].Count > 0, working: s.Turn == agency.TurnWorking, model: s.Model, ended: before == readLast}
	var evidence []agency.Evidence
	heard := heardAt(s)
	for line := range bytes.Lines(lines) {
		var e event
		if !agent.Lenient(line, &e) || e.Type == "" {
			continue
		}
		of := r.evidence(&e)
		// Copilot writes its file in pieces: an event is older than the moment it is read.
		at, err := time.Parse(time.RFC3339, e.At)
		if err != nil || at.Before(heard) {
			at = time.Time{}
		}
		for i := range of {
			of[i].At = at
			of[i].Source, of[i].Event, of[i].Subagent = cmp.Or(of[i].Source, agency.FromSession), e.Type, e.Agent
		}
		evidence = append(evidence, of...)
	}
	read := readOn
	if r.ended {
		read = readLast
	}
	// The offset goes with evidence that has no other content.
	return append(evidence, agency.Evidence{Source: agency.FromTranscript, Signal: agency.SignalUsage, Event: read, Offset: next})
}

func (r *reader) evidence(e *event) []agency.Evidence {
	d := &e.Data
	if r.begun = r.begun || e.Type == "user.message" || e.Type == "session.error"; !r.begun {
		return nil
	}
	one := func(e agency.Evidence) []agency.Evidence { return []agency.Evidence{e} }
	switch e.Type {
	case "tool.execution_start":
		started := one(agency.Evidence{Signal: agency.SignalToolStarted, ID: d.CallID, Tool: d.Tool, Text: agent.ToolText(d.Arguments)})
		if d.Tool == asks {
			started = append(started, agency.Evidence{
				Signal: agency.SignalAsked, ID: d.CallID, Kind: agency.AsksQuestion, Tool: d.Tool, Text: question(d.Arguments),
			})
		}
		r.working = true
		return started
	case "tool.execution_complete":
		return one(agency.Evidence{Signal: agency.SignalToolEnded, ID: d.CallID, Tool: d.Tool})
	case "permission.requested":
		if d.ByHook {
			return nil
		}
		return one(agency.Evidence{
			Signal: agency.SignalAsked, ID: d.RequestID, Kind: agency.AsksPermission, Tool: d.Permission.Kind, Text: d.Permission.text(),
		})
	case "permission.completed":
		return one(agency.Evidence{Signal: agency.SignalAnswered, ID: d.RequestID})
	case "session.usage_record":
		return r.used(d.Usage)
	}
	if e.Agent != "" {
		return nil // of a subagent; the agent's own turn continues
	}
	return r.turn(e)
}

// turn reads what the agent itself does. It answers in several rounds, one for each call of the
// model, and the one that calls no tool is the last.
func (r *reader) turn(e *event) []agency.Evidence {
	d := &e.Data
	was := r.working
	var evidence agency.Evidence
	switch e.Type {
	case "user.message":
		r.working, r.ended = true, false
		return []agency.Evidence{{Signal: agency.SignalPrompt}, {Signal: agency.SignalSession}} // no dialog of the start is open
	case "assistant.turn_start":
		if r.working, r.ended = true, false; was {
			return nil
		}
		// The agent works without a prompt, for example after a notice from a subagent: its
		// requests stay open.
		evidence.Source, evidence.Signal = agency.FromTranscript, agency.SignalBusy
	case "assistant.message":
		r.ended, r.last = len(d.Requests) == 0, d.Content
		return nil
	case "assistant.turn_end":
		if !r.ended {
			return nil
		}
		r.working = false
		evidence.Signal, evidence.Text = agency.SignalTurnEnded, r.last
	case "abort":
		r.working, r.ended = false, false
		evidence.Signal = agency.SignalInterrupted
	case "session.error":
		r.working, r.ended = false, false
		evidence.Signal, evidence.Class, evidence.Text = agency.SignalFailed, errorClass(d.Class, d.Status, d.Message), d.Message
	case "session.shutdown":
		evidence.Signal = agency.SignalEnded
	default:
		return nil // there are many, and none shows that the turn began or ended
	}
	return []agency.Evidence{evidence}
}

func (r *reader) used(u *usage) []agency.Evidence {
	if u == nil {
		return nil
	}
	var evidence []agency.Evidence
	if u.Model != "" && u.Model != r.model {
		r.model = u.Model
		evidence = append(evidence, agency.Evidence{Signal: agency.SignalSession, Model: u.Model})
	}
	return append(evidence, agency.Evidence{Signal: agency.SignalUsage, Usage: u.total(), Add: true})
}

// question is what the agent asks the user.
func question(arguments json.RawMessage) string {
	var in struct {
		Message  string `json:"message"`
		Question string `json:"question"` // as older versions have it
	}
	_ = agent.Lenient(arguments, &in)
	return strings.TrimSpace(in.Message + in.Question)
}

// errorClass returns the class of an error by its status, by Copilot's name of it, or by its text.
func errorClass(name string, status int, text string) agency.ErrorClass {
	if status != 0 && status != 400 {
		return agent.StatusClass(status)
	}
	if name == "context_limit" || strings.Contains(text, "prompt as too long") {
		return agency.ErrorContext
	}
	if class := agent.ErrorClass(name + ": " + text); class != agency.ErrorOther || status == 0 {
		return class
	}
	return agency.ErrorRequest
}
