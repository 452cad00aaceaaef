package api

import (
	"time"

	"agency"
)

// StartTimerRequest starts a timer. It replaces one with the same name.
type StartTimerRequest struct {
	Run        string `json:"run"`
	Name       string `json:"name,omitempty"` // empty means the run's name
	Message    string `json:"message"`
	IntervalMS int64  `json:"interval_ms"`
}

// StartTimerResponse is the new timer.
type StartTimerResponse struct {
	Timer    Timer `json:"timer"`
	Replaced bool  `json:"replaced"` // there was a timer with its name
}

// StopTimersRequest ends timers.
type StopTimersRequest struct {
	Dir  string `json:"dir,omitempty"`  // only timers for runs of the repository of this directory; empty means all repositories
	Name string `json:"name,omitempty"` // empty means all that the caller may end: a run its own, the user all
}

// StopTimersResponse names the timers that were ended.
type StopTimersResponse struct {
	Stopped []string `json:"stopped"`
}

// ListTimersRequest selects timers.
type ListTimersRequest struct {
	Dir string `json:"dir,omitempty"` // only timers and alerts of the repository of this directory; empty means all repositories
}

// ListTimersResponse describes the state of the watchdog and its timers.
type ListTimersResponse struct {
	Timers     []Timer    `json:"timers"`
	TickedAt   *time.Time `json:"ticked_at"` // when the watchdog last looked at anything
	OpenAlerts int        `json:"open_alerts"`
}

// Timer writes a message to a run again and again, while the run is idle.
type Timer struct {
	Name       string       `json:"name"`
	RunID      agency.RunID `json:"run_id"`
	RunName    string       `json:"run_name"`
	Owner      string       `json:"owner"` // the id of a run, or "user"
	Message    string       `json:"message"`
	IntervalMS int64        `json:"interval_ms"`
	StartedAt  time.Time    `json:"started_at"`
	NextAt     time.Time    `json:"next_at"`
	TickedAt   *time.Time   `json:"ticked_at"`
	Ticks      int          `json:"ticks"`
	Sent       int          `json:"sent"`
	Skipped    int          `json:"skipped"` // ticks at which the run was not idle
	Failed     int          `json:"failed"`
	Outcome    string       `json:"outcome"`    // of the last tick, for users
	StoppedAt  *time.Time   `json:"stopped_at"` // when it ended by itself
	StopReason string       `json:"stop_reason"`
}

// NewTimer returns the view of a timer.
func NewTimer(t *agency.Timer, runName string) Timer {
	return Timer{
		Name: t.Name, RunID: t.RunID, RunName: runName, Owner: t.Owner, Message: t.Message, IntervalMS: t.Interval.Milliseconds(),
		StartedAt: t.StartedAt, NextAt: t.NextAt, TickedAt: t.TickedAt, Ticks: t.Ticks, Sent: t.Sent, Skipped: t.Skipped, Failed: t.Failed,
		Outcome: t.Outcome, StoppedAt: t.StoppedAt, StopReason: t.StopReason,
	}
}
