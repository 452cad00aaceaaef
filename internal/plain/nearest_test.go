package plain_test

import (
	"strings"
	"testing"

	"agency/internal/plain"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"prompt", "runner", "repo", "base_ref", "claude_code", "base_commit"}
	for word, want := range map[string]string{
		"promt": "prompt", "Prompt": "prompt", "runer": "runner", "base-ref": "base_ref", "repo": "repo", "rep": "repo", "Claud": "claude_code", "base": "", "cla": "",
		"": "", "x": "", "completely": "", strings.Repeat("prompt", 1000): "",
	} {
		if got := plain.Nearest(word, known); got != want {
			t.Errorf("Nearest(%.20q) = %q, want %q", word, got, want)
		}
	}
}
