package harness

import (
	"strings"

	"agency"
)

// Tested returns the version of an agent whose events were recorded; empty for programs that report
// nothing by themselves.
func Tested(kind agency.RunnerKind) string { return of(kind).Version }

// IsTested reports whether the version that an agent prints is the tested one; true when there is
// no tested version.
func IsTested(kind agency.RunnerKind, version string) bool {
	want := Tested(kind)
	for word := range strings.FieldsSeq(version) {
		if strings.TrimPrefix(word, "v") == want {
			return true
		}
	}
	return want == "" || version == ""
}
