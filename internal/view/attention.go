package view

import (
	"slices"

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

// ByGroup puts runs into the order of their groups. Within a group they stay in the order in which
// the daemon lists them.
func ByGroup(runs []api.Run) {
	slices.SortStableFunc(runs, func(a, b api.Run) int { return int(GroupOf(&a)) - int(GroupOf(&b)) })
}
