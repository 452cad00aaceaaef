package harness_test

import (
	"bytes"
	"slices"
	"testing"

	"agency"
	"agency/internal/harness"
	"agency/internal/protocol"
)

// Each protocol hands a picture to the agent. Other files are only named in the text of the message.
func TestAttached(t *testing.T) {
	t.Parallel()
	for kind, want := range map[agency.RunnerKind]string{
		"claude_code": `@\"/w/.agency/files/a.png\"`,
		"codex":       `{"path":"/w/.agency/files/a.png","type":"localImage"}`,
		"gemini":      `{"mimeType":"image/png","name":"a.png","type":"resource_link","uri":"file:///w/.agency/files/a.png"}`,
	} {
		says := func(files ...string) []byte {
			return harness.Dialect(kind, "").Message(protocol.Place{Conversation: "c"}, "id", "look", files)
		}
		if got := says("/w/.agency/files/a.png"); !bytes.Contains(got, []byte(want)) {
			t.Errorf("%s: %s", kind, got)
		}
		for frame := range slices.Values([][]byte{says(), says("/w/.agency/files/a.txt")}) {
			if bytes.Contains(frame, []byte("mage")) || !bytes.Contains(frame, []byte("look")) {
				t.Errorf("%s: %s", kind, frame)
			}
		}
	}
}
