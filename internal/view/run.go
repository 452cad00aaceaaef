package view

import (
	"cmp"

	"agency/internal/api"
)

// Summary is the summary of a run, or what is wrong with it. It is untrusted text.
func Summary(r *api.Run) string { return cmp.Or(r.Problem, r.Summary) }
