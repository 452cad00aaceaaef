package harness_test

import (
	"os"
	"regexp"
	"testing"

	"agency"
	"agency/internal/harness"
)

// What is called tested is what make conformance installs.
func TestTestedIsInstalled(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("../../scripts/agents.sh")
	if err != nil {
		t.Fatal(err)
	}
	for kind, name := range map[agency.RunnerKind]string{
		"claude_code": "@anthropic-ai/claude-code", "codex": "@openai/codex", "opencode": "opencode-ai", "gemini": "@google/gemini-cli",
	} {
		installed := ""
		if m := regexp.MustCompile(regexp.QuoteMeta(name) + `@([0-9.]+)`).FindSubmatch(script); m != nil {
			installed = string(m[1])
		}
		if got := harness.Tested(kind); got != installed {
			t.Errorf("%s is tested with %q, and scripts/agents.sh installs %q", kind, got, installed)
		}
	}
}

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
