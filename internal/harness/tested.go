package harness

import (
	"strings"

	"agency"
)

// Tested returns the version of an agent that its events were recorded with; empty for programs that tell nothing of their own.
func Tested(kind agency.RunnerKind) string { return of(kind).Version }

// IsTested reports whether what an agent prints as its version is the tested one, or there is none.
func IsTested(kind agency.RunnerKind, version string) bool {
	want := Tested(kind)
	for word := range strings.FieldsSeq(version) {
		if strings.TrimPrefix(word, "v") == want {
			return true
		}
	}
	return want == "" || version == ""
}
