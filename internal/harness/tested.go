package harness

import (
	"strings"

	"agency"
)

// Tested is the version of an agent that its events were recorded with and that make conformance runs; empty for programs
// that tell nothing of their own. scripts/agents.sh installs the same.
func Tested(kind agency.RunnerKind) string {
	switch kind {
	case agency.ClaudeCode:
		return "2.1.329"
	case agency.Codex:
		return "0.169.0"
	case agency.OpenCode:
		return "1.18.33"
	case agency.Gemini:
		return "0.61.0"
	default:
		return ""
	}
}

// IsTested says that what an agent prints as its version is the tested one, or that there is none.
func IsTested(kind agency.RunnerKind, version string) bool {
	want := Tested(kind)
	for word := range strings.FieldsSeq(version) {
		if strings.TrimPrefix(word, "v") == want {
			return true
		}
	}
	return want == "" || version == ""
}
