package supervisor_test

import (
	"testing"

	"agency/internal/supervisor"
)

// The text of a message stays as it is, but for line ends before the names.
func TestAttached(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "Attached: a, b", "\n\n": "Attached: a, b", "look": "look\n\nAttached: a, b", "\n\n  look\n": "\n\n  look\n\nAttached: a, b",
	} {
		if got := supervisor.Attached(text, []string{"a", "b"}); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
