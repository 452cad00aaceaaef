package view_test

import (
	"testing"

	"agency"
	"agency/internal/api"
	"agency/internal/view"
)

// What the user stopped has not failed: it is called stopped, is not red and not among what failed.
func TestStoppedIsNoFailure(t *testing.T) {
	t.Parallel()
	for label, want := range map[agency.Label]struct {
		word   string
		colour view.Colour
		group  view.Group
	}{
		agency.LabelKilled: {"stopped", view.Dim, view.GroupRest},
		agency.LabelFailed: {"failed", view.Red, view.GroupFailed},
	} {
		r := &api.Run{Status: label}
		if got := view.MarkColour(label.Mark()); got != want.colour || label.String() != want.word || view.GroupOf(r) != want.group {
			t.Errorf("%s: %s in %s, group %s", string(label), label, got, view.GroupOf(r).Title())
		}
	}
}
