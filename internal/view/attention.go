package view

import (
	"cmp"

	"agency"
	"agency/internal/api"
)

// Group is a part of a list of runs, by how much they need a user.
type Group int

// The groups, in the order in which they are shown.
const (
	GroupNeedsYou Group = iota // it cannot continue until a user acts
	GroupFailed                // it ended badly, and does not wait
	GroupReady                 // it offers its work
	GroupWorking
	GroupRest
	GroupSnoozed // a user put off all that it has to tell
)

// Title returns the title of a group.
func (g Group) Title() string {
	return [...]string{"NEEDS YOU", "FAILED", "READY", "WORKING", "REST", "SNOOZED"}[g]
}

// GroupOf returns the group of a run.
func GroupOf(r *api.Run) Group {
	switch {
	case r.RemovedAt != nil:
		return GroupRest
	case r.SnoozedUntil != nil:
		return GroupSnoozed
	case r.NeedsYou():
		return GroupNeedsYou
	}
	switch r.Status {
	case agency.LabelFailed, agency.Broken:
		return GroupFailed
	case agency.ReadyForReview:
		return GroupReady
	case agency.Working, agency.Active, agency.LabelQueued, agency.LabelRemoving:
		return GroupWorking
	default:
		return GroupRest
	}
}

// Compare returns a negative number when a user looks at a before b: it has an earlier group, or in
// the same one it comes first in api.OrderByNeed.
func Compare(a, b *api.Run) int {
	return cmp.Or(int(GroupOf(a))-int(GroupOf(b)), a.Rank().Compare(b.Rank()))
}
