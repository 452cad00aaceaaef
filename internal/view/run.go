package view

import (
	"cmp"

	"agency"
	"agency/internal/api"
)

// Summary returns the problem of a run, or else its summary. It is untrusted text. A stopped run has no summary:
// its status is enough.
func Summary(r *api.Run) string {
	if r.Status == agency.LabelKilled {
		return r.Problem
	}
	return cmp.Or(r.Problem, r.Summary)
}
