package api

import (
	"time"

	"agency"
)

// ShowScreenRequest asks what the terminal of a run shows. With Seen it waits until that is
// something else.
type ShowScreenRequest struct {
	Run     string `json:"run" jsonschema:"its name, handle or id"`
	Seen    string `json:"seen,omitempty"`       // the revision that the client has; empty is none
	Wait    int64  `json:"timeout_ms,omitempty"` // how long to wait for another, in milliseconds; 0 means no limit
	History int    `json:"history,omitempty"`    // how many rows that scrolled off the screen come with it, at most 2000
}

func (r ShowScreenRequest) time() time.Duration { return time.Duration(r.Wait) * time.Millisecond }

func (r ShowScreenRequest) after(passed time.Duration) any {
	r.Wait = left(r.Wait, passed)
	return r
}

// ShowScreenResponse is what the terminal of a run shows, or the end of its log when it has none. It
// is the screen that the client has seen when the time is over.
type ShowScreenResponse struct {
	RunID    agency.RunID  `json:"run_id"`    // the id of the run
	Attempt  int           `json:"attempt"`   // the attempt that the screen is of
	Screen   agency.Screen `json:"screen"`    // what it shows
	TimedOut bool          `json:"timed_out"` // the time was up, and the screen is the one that the client has
}
