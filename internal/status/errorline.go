package status

import (
	"time"

	"agency"
)

// PrintedTimeout is how long after its last error line a worker must still show activity for the
// error to count as past.
const PrintedTimeout = 5 * time.Minute

// ErrorStands reports whether the agent printed an error that is not past: no prompt and no message
// came since, and the agent did not continue. active is its newest sign of life.
func ErrorStands(a *agency.Attempt, active time.Time) bool {
	s := &a.AgentState
	answered := a.InputAt != nil && a.InputAt.After(s.PrintedAt)
	return s.Printed != nil && !answered && active.Sub(s.PrintedAt) < PrintedTimeout
}
