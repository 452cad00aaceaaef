package codex

import (
	"bytes"
	"encoding/json"
	"io"
	"path/filepath"

	"agency"
	"agency/internal/file"
	"agency/internal/harness/agent"
)

// rolloutPiece is the most of a rollout that is read at once, in bytes.
const rolloutPiece = 4 << 20

// files returns the rollout, in which Codex keeps the conversation. Its hooks name the path.
func files(s *agency.AgentState, _ *agency.Process) []string {
	if ours, _ := filepath.Match("rollout-*.jsonl", filepath.Base(s.Transcript)); !ours || !filepath.IsAbs(s.Transcript) {
		return nil
	}
	return []string{s.Transcript}
}

// readFile reads what no hook reports: turns that ended with an error, the model, and the usage.
// The rest is left to the hooks, because they come in order and the rollout is read a moment later.
func readFile(path string, s *agency.AgentState) []agency.Evidence {
	if path != s.Transcript {
		return nil // of an earlier conversation
	}
	f, err := file.OpenRegular(path)
	if err != nil {
		return nil // it does not exist yet, or was removed
	}
	defer func() { _ = f.Close() }()
	var evidence []agency.Evidence
	offset := s.TranscriptOffset
	for {
		data, err := io.ReadAll(io.NewSectionReader(f, offset, rolloutPiece))
		if err != nil {
			break
		}
		end := bytes.LastIndexByte(data, '\n') + 1
		if end == 0 && len(data) == rolloutPiece {
			end = len(data) // a line without an end, an image for example, is skipped piece by piece
		}
		if end == 0 {
			break
		}
		for line := range bytes.Lines(data[:end]) {
			evidence = append(evidence, rollout(line)...)
		}
		offset += int64(end)
	}
	if offset == s.TranscriptOffset {
		return nil
	}
	if len(evidence) == 0 {
		// Only how far it was read.
		evidence = []agency.Evidence{{Signal: agency.SignalUsage, Event: "read"}}
	}
	for i := range evidence {
		evidence[i].Source = agency.FromTranscript
	}
	evidence[len(evidence)-1].Offset = offset
	return evidence
}

// rollout reads one line of a rollout. Most lines are the conversation itself.
func rollout(line []byte) []agency.Evidence {
	var in struct {
		Type    string `json:"type"`
		Payload struct {
			Type   string `json:"type"`
			Model  string `json:"model"`
			Reason string `json:"reason"`
			Info   struct {
				Total *usage `json:"total_token_usage"`
			} `json:"info"`
			Error *struct {
				Message string          `json:"message"`
				Kind    json.RawMessage `json:"codex_error_info"`
			} `json:"error"`
		} `json:"payload"`
	}
	if !agent.Lenient(line, &in) {
		return nil
	}
	e := agency.Evidence{Event: in.Payload.Type}
	switch p := &in.Payload; {
	case in.Type == "turn_context" && p.Model != "":
		e.Signal, e.Event, e.Model = agency.SignalSession, in.Type, p.Model
	case in.Type != "event_msg":
		return nil
	case p.Type == "token_count" && p.Info.Total != nil:
		e.Signal, e.Usage, e.Whole = agency.SignalUsage, p.Info.Total.total(), true
	case p.Type == "task_complete" && p.Error != nil:
		e.Signal, e.Class, e.Text = agency.SignalFailed, errorClass(p.Error.Kind, p.Error.Message), p.Error.Message
	case p.Type == "turn_aborted" && p.Reason == "interrupted":
		e.Signal = agency.SignalInterrupted
	default:
		return nil
	}
	return []agency.Evidence{e}
}
