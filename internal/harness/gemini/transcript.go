package gemini

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agency"
	"agency/internal/file"
	"agency/internal/harness/agent"
)

// head is the most that is read of a conversation's first line, in bytes.
const head = 4 << 10

// known returns the evidence with which an attempt in a terminal begins: its conversation, and the
// folder below which Gemini will keep it. Only the caller's environment gives that folder.
func known(r agency.CommandRequest) map[string][]byte {
	home := agency.Environ(r.Env).Lookup("GEMINI_CLI_HOME")
	if home == "" {
		home = agency.Environ(r.Env).Lookup("HOME")
	}
	if r.Headless || r.ConversationID == "" || !filepath.IsAbs(home) {
		return nil
	}
	// The transcript has no evidence yet, and must not override the screen.
	known := agency.Evidence{
		Source: agency.FromTitle, Signal: agency.SignalSession, Event: "start",
		Conversation: r.ConversationID, Transcript: filepath.Join(home, ".gemini", "tmp"),
	}
	// The content of an old conversation was read by an earlier attempt.
	if old := conversation(known.Transcript, r.ConversationID); old != "" {
		known.Transcript, known.Offset = old, agent.SizeOf(old)
	}
	line, err := json.Marshal(known)
	if err != nil {
		return nil
	}
	return map[string][]byte{agency.EventsFile: append(line, '\n')}
}

// files returns the conversation, as soon as there is one.
func files(s *agency.AgentState, _ *agency.Process) []string {
	path := s.Transcript
	if filepath.Ext(path) == "" && filepath.IsAbs(path) {
		path = conversation(path, s.Conversation)
	}
	if !filepath.IsAbs(path) || filepath.Ext(path) != ".jsonl" {
		return nil
	}
	return []string{path}
}

// conversation finds a conversation below the folder of all. Its name holds the beginning of its
// id, its first line all of it.
func conversation(folder, id string) string {
	if len(id) < 8 || !agent.ConversationRule().MatchString(id) {
		return ""
	}
	// Pattern characters in the folder's own name would match nothing, which does no harm.
	found, err := filepath.Glob(filepath.Join(folder, "*", "chats", "session-*-"+id[:8]+".jsonl"))
	if err != nil {
		return ""
	}
	slices.SortFunc(found, func(a, b string) int { return modified(b).Compare(modified(a)) })
	for _, path := range found {
		var first struct {
			ID string `json:"sessionId"`
		}
		line, _, _ := bytes.Cut(readPart(path, 0, head), []byte("\n"))
		if agent.Lenient(line, &first) && first.ID == id {
			return path
		}
	}
	return ""
}

func modified(path string) time.Time {
	info, err := os.Lstat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// record is one line of a conversation. Most are messages; some are changes.
type record struct {
	ID      string          `json:"id"`
	Time    time.Time       `json:"timestamp"`
	Type    string          `json:"type"`
	Content json.RawMessage `json:"content"`
	Model   string          `json:"model"`
	Tokens  *struct {
		Input    int64 `json:"input"`
		Output   int64 `json:"output"`
		Cached   int64 `json:"cached"`
		Thoughts int64 `json:"thoughts"`
	} `json:"tokens"`
	Calls []struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"toolCalls"`
}

// readTranscript reads what was added to a conversation. The title shows that the agent works or
// rests, and often sooner: lines older than the newest title change no turn.
func readTranscript(path string, s *agency.AgentState) []agency.Evidence {
	offset := s.TranscriptOffset
	var evidence []agency.Evidence
	if s.Transcript != path {
		offset = 0
		evidence = append(evidence, agency.Evidence{Signal: agency.SignalSession, Event: "found", Transcript: path})
	}
	lines, next := agent.Tail(path, offset)
	if next == offset && len(evidence) == 0 {
		return nil
	}
	title := s.Sources[agency.FromTitle]
	model := s.Model
	titled := title.Count > 0 && title.Signal != agency.SignalSession
	records := records(lines)
	for i := range records {
		r := &records[i]
		later := title.At.After(r.Time)
		switch {
		case r.Type == "user" && (!r.prompt() || replayed(records, i) || !titled): // nothing would show the end of a turn
		case r.Type == "user" && later && title.Signal == agency.SignalResting:
			evidence = append(evidence, r.evidence()...)
			evidence = append(evidence, agency.Evidence{Signal: agency.SignalTurnEnded, Event: "over"})
		case (r.Type == "error" || r.Type == "info") && later && title.Signal == agency.SignalBusy: // of a turn before
		default:
			evidence = append(evidence, r.evidence()...)
		}
		if r.Model != "" && r.Model != model {
			model = r.Model
			evidence = append(evidence, agency.Evidence{Signal: agency.SignalSession, Event: r.Type, Model: model})
		}
	}
	// The offset goes with the last evidence, which has no other content.
	evidence = append(evidence, agency.Evidence{Signal: agency.SignalUsage, Event: "read", Offset: next})
	for i := range evidence {
		evidence[i].Source = agency.FromTranscript
	}
	return evidence
}

func records(lines []byte) []record {
	var records []record
	for line := range bytes.Lines(lines) {
		var r record
		if agent.Lenient(line, &r) && r.Type != "" {
			records = append(records, r)
		}
	}
	return records
}

// replayed reports whether a prompt is an old one: after an interruption Gemini writes the whole
// conversation again, all at once.
func replayed(records []record, i int) bool {
	same := func(j int) bool { return j >= 0 && j < len(records) && records[j].Time.Equal(records[i].Time) }
	if same(i-1) || same(i+1) {
		return true
	}
	return i > 0 && records[i-1].Type == "info" && records[i].Time.Sub(records[i-1].Time).Abs() < 50*time.Millisecond
}

// prompt reports whether a line of the user is a prompt, and not the result of a tool.
func (r *record) prompt() bool {
	var parts []struct {
		Text string `json:"text"`
	}
	return agent.Lenient(r.Content, &parts) && len(parts) > 0 && parts[0].Text != "" && !strings.HasPrefix(parts[0].Text, "<session_context>")
}

func (r *record) evidence() []agency.Evidence {
	var text string
	_ = json.Unmarshal(r.Content, &text)
	e := agency.Evidence{Event: r.Type, Text: text}
	switch r.Type {
	case "user":
		e.Signal = agency.SignalPrompt
	case "gemini":
		return r.answer()
	case "error":
		e.Signal, e.Class = agency.SignalFailed, agent.ErrorClass(text)
	case "info":
		if text != "Request cancelled." {
			return nil
		}
		e.Signal, e.Text = agency.SignalInterrupted, ""
	default:
		return nil
	}
	return []agency.Evidence{e}
}

// answer is an answer of the model. It is written again when its tools have ended, with their
// results and the same usage.
func (r *record) answer() []agency.Evidence {
	var evidence []agency.Evidence
	for _, call := range r.Calls {
		evidence = append(evidence, agency.Evidence{Signal: agency.SignalToolEnded, Event: r.Type, ID: call.ID, Tool: call.Name})
	}
	if t := r.Tokens; t != nil && len(r.Calls) == 0 {
		output := t.Output + t.Thoughts
		used := &agency.Usage{InputTokens: &t.Input, CachedTokens: &t.Cached, OutputTokens: &output}
		evidence = append(evidence, agency.Evidence{Signal: agency.SignalUsage, Event: r.Type, Usage: used, Add: true})
	}
	return evidence
}

// readPart reads at most limit bytes of a regular file, from offset on.
func readPart(path string, offset int64, limit int) []byte {
	f, err := file.OpenRegular(path)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	data := make([]byte, limit)
	n, _ := f.ReadAt(data, offset)
	return data[:n]
}
