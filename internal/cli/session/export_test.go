package session

import (
	"time"

	"agency/internal/api"
)

// Concerns reports whether an event is about a session or one of its runs.
var Concerns = concerns

// Lines returns the picture of a session, for a terminal of that many columns and rows.
func Lines(s *api.ShowSessionResponse, now time.Time, columns, rows int) []string {
	v := &picture{ShowSessionResponse: s, now: now, width: columns}
	return v.lines(rows)
}
