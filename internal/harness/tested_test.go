package harness_test

import (
	"testing"

	"agency"
	"agency/internal/harness"
)

func TestIsTested(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{
		harness.Tested("claude_code") + " (Claude Code)": true, "0.0.1 (Claude Code)": false, "": true,
	} {
		if got := harness.IsTested("claude_code", version); got != want {
			t.Errorf("%q: %v", version, got)
		}
	}
	if !harness.IsTested(agency.Custom, "1.0") {
		t.Error("a custom runner has no tested version")
	}
}
