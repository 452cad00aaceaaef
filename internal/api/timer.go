package api

import (
	"time"

	"agency"
)

// StartTimerRequest starts a timer. It replaces one with the same name.
type StartTimerRequest struct {
	Run        string `json:"run"`            // its name, handle or id
	Name       string `json:"name,omitempty"` // of the timer; empty means the run's name
	Message    string `json:"message"`        // what to write, in plain text, at most 4 KiB
	IntervalMS int64  `json:"interval_ms"`    // from one tick to the next, in milliseconds: 5 seconds to 24 hours
}

// StartTimerResponse is the new timer.
type StartTimerResponse struct {
	Timer    Timer `json:"timer"`    // the new timer
	Replaced bool  `json:"replaced"` // there was a timer with its name
}

// StopTimersRequest ends timers.
type StopTimersRequest struct {
	Dir  string `json:"dir,omitempty"`  // only timers for runs of the repository of this directory; empty means all repositories
	Name string `json:"name,omitempty"` // of the timer; empty means all that the caller may end: a run its own, the user all
}

// StopTimersResponse names the timers that were ended.
type StopTimersResponse struct {
	Stopped []string `json:"stopped"` // the names of the timers that were ended
}

// ListTimersRequest selects timers.
type ListTimersRequest struct {
	Dir string `json:"dir,omitempty"` // only timers and alerts of the repository of this directory; empty means all repositories
}

// ListTimersResponse describes the state of the watchdog and its timers.
type ListTimersResponse struct {
	Timers     []Timer    `json:"timers"`      // also those that ended by themselves
	TickedAt   *time.Time `json:"ticked_at"`   // when the watchdog last looked at anything; null before that
	OpenAlerts int        `json:"open_alerts"` // how many alerts are open
}

// Timer writes a message to a run again and again, while the run is idle.
type Timer struct {
	Name       string       `json:"name"`        // no other timer has it
	RunID      agency.RunID `json:"run_id"`      // the run that it writes to
	RunName    string       `json:"run_name"`    // the name or handle of that run
	Owner      string       `json:"owner"`       // who started it: the id of a run, or "user"
	Message    string       `json:"message"`     // what it writes
	IntervalMS int64        `json:"interval_ms"` // from one tick to the next, in milliseconds
	StartedAt  time.Time    `json:"started_at"`  // when it was started
	NextAt     time.Time    `json:"next_at"`     // when the next tick is due; means nothing once the timer has ended
	TickedAt   *time.Time   `json:"ticked_at"`   // the last tick; null before the first
	Ticks      int          `json:"ticks"`       // how many there were: sent, skipped and failed ones
	Sent       int          `json:"sent"`        // ticks at which the message was written
	Skipped    int          `json:"skipped"`     // ticks at which the run was not idle
	Failed     int          `json:"failed"`      // ticks at which it could not be written
	Outcome    string       `json:"outcome"`     // the result of the last tick, for users; empty before the first
	StoppedAt  *time.Time   `json:"stopped_at"`  // when it ended by itself; null while it runs
	StopReason string       `json:"stop_reason"` // why it ended; empty while it runs
}

// NewTimer returns the view of a timer.
func NewTimer(t *agency.Timer, runName string) Timer {
	return Timer{
		Name: t.Name, RunID: t.RunID, RunName: runName, Owner: t.Owner, Message: t.Message, IntervalMS: t.Interval.Milliseconds(),
		StartedAt: t.StartedAt, NextAt: t.NextAt, TickedAt: t.TickedAt, Ticks: t.Ticks, Sent: t.Sent, Skipped: t.Skipped, Failed: t.Failed,
		Outcome: t.Outcome, StoppedAt: t.StoppedAt, StopReason: t.StopReason,
	}
}
