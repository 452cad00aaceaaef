package view

import (
	"cmp"

	"agency/internal/api"
)

// Summary returns the summary of a run, or its problem. It is untrusted text.
func Summary(r *api.Run) string { return cmp.Or(r.Problem, r.Summary) }
