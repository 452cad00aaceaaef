package status

import (
	"time"

	"agency"
)

// PrintedTimeout is how long after the last line of output that is an error a worker must be seen to do something, so that
// the error is past.
const PrintedTimeout = 5 * time.Minute

// ErrorStands reports whether the agent printed an error that is not past: no prompt and no message came since, and it was not seen
// to go on; active is its newest sign of life.
func ErrorStands(a *agency.Attempt, active time.Time) bool {
	s := &a.AgentState
	answered := a.InputAt != nil && a.InputAt.After(s.PrintedAt)
	return s.Printed != nil && !answered && active.Sub(s.PrintedAt) < PrintedTimeout
}
