package script_test

import (
	"testing"

	"agency/test/paste"
)

// A newcomer pastes the blocks of docs/tour.md one after the other, and gets the output below each.
func TestTour(t *testing.T) {
	t.Parallel()
	page := paste.Page{Path: "../../docs/tour.md", Dir: "/tmp/agency-tour", Skip: []string{"make build"}, Bin: bin}
	page.Check(t, func(string) {})
}
