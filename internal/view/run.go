package view

import (
	"cmp"
	"slices"

	"agency"
	"agency/internal/api"
)

// Summary returns the summary of a run, or its problem. It is untrusted text. A stopped run has
// none: its status says it all.
func Summary(r *api.Run) string {
	if r.Status == agency.LabelKilled {
		return r.Problem
	}
	return cmp.Or(r.Problem, r.Summary)
}

// ByNeed returns runs in the order in which users look at them: first those that need a user, the
// longest waiting on top; then the others, newest first.
func ByNeed(runs []api.Run) []api.Run {
	sorted := slices.Clone(runs)
	slices.SortStableFunc(sorted, func(a, b api.Run) int {
		switch needs := a.Status.NeedsUser(); {
		case needs != b.Status.NeedsUser():
			if needs {
				return -1
			}
			return 1
		case needs:
			return cmp.Or(a.Since.Compare(b.Since), a.CreatedAt.Compare(b.CreatedAt))
		default:
			return b.CreatedAt.Compare(a.CreatedAt)
		}
	})
	return sorted
}
