package agency

import "time"

// Span is one step of a request, as a process timed it for AGENCY_TRACE.
type Span struct {
	Process string    `json:"process"` // what the process is: agency, daemon or wrapper
	PID     int       `json:"pid"`
	Lane    int       `json:"lane"` // from 1; spans of one lane of a process do not overlap
	Name    string    `json:"name"`
	Begin   time.Time `json:"begin"`
	End     time.Time `json:"end"`
}
