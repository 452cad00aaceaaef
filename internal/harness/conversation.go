package harness

import (
	"bytes"
	"encoding/json"

	"agency"
)

// Conversation finds the id of an agent's conversation in the beginning of the stream that it writes without a terminal:
// Codex tells it in its first line, OpenCode in every line. It is "" when there is none, and for agents whose id the caller
// chose. The stream is untrusted: an id that could be read as an option is none.
func Conversation(kind agency.RunnerKind, stream []byte) string {
	for line := range bytes.Lines(stream) {
		var event struct {
			Type      string `json:"type"`
			ThreadID  string `json:"thread_id"`
			SessionID string `json:"sessionID"`
		}
		if json.Unmarshal(line, &event) != nil {
			continue
		}
		id := ""
		switch kind {
		case agency.Codex:
			if event.Type == "thread.started" {
				id = event.ThreadID
			}
		case agency.OpenCode:
			id = event.SessionID
		case agency.ClaudeCode, agency.Gemini, agency.Shell, agency.Custom:
			return ""
		}
		if conversationRule.MatchString(id) {
			return id
		}
	}
	return ""
}
