package view

import (
	"cmp"

	"agency"
	"agency/internal/api"
)

// Summary returns the summary of a run, or its problem. It is untrusted text. A stopped run has
// none: its status shows it all.
func Summary(r *api.Run) string {
	if r.Status == agency.LabelKilled {
		return r.Problem
	}
	return cmp.Or(r.Problem, r.Summary)
}
