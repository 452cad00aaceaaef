package view

import (
	"cmp"

	"agency"
	"agency/internal/api"
)

// Group is a part of a list of runs that is ordered by how much the runs need a user.
type Group int

// The groups, in the order in which they are shown.
const (
	GroupNeedsYou Group = iota // it asks, or has a flag
	GroupFailed                // it ended badly, and does not wait
	GroupStuck                 // it is blocked, or gave no sign for too long
	GroupReady                 // it offers its work
	GroupWaiting               // its turn ended, and it did not say what it needs
	GroupWorking
	GroupRest
	GroupSnoozed // a user snoozed its alerts
)

// Title returns the title of a group.
func (g Group) Title() string {
	return [...]string{"NEEDS YOU", "FAILED", "STUCK", "READY", "WAITING", "WORKING", "REST", "SNOOZED"}[g]
}

// GroupOf returns the group of a run.
func GroupOf(r *api.Run) Group {
	switch {
	case r.RemovedAt != nil:
		return GroupRest
	case r.SnoozedUntil != nil:
		return GroupSnoozed
	}
	switch r.Status {
	case agency.NeedsInput, agency.NeedsAttention:
		return GroupNeedsYou
	case agency.LabelFailed, agency.Broken:
		return GroupFailed
	case agency.Blocked, agency.Stalled:
		return GroupStuck
	case agency.ReadyForReview:
		return GroupReady
	case agency.Waiting:
		return GroupWaiting
	case agency.Working, agency.Active, agency.LabelQueued, agency.LabelRemoving:
		return GroupWorking
	default:
		return GroupRest
	}
}

// Compare returns a negative number when a comes before b in a list for users: its group is earlier or, in the
// same group, it comes first in api.OrderByNeed.
func Compare(a, b *api.Run) int {
	return cmp.Or(int(GroupOf(a))-int(GroupOf(b)), a.Rank().Compare(b.Rank()))
}
