package api

import (
	"time"

	"agency"
)

// ListEventsRequest asks for events after Since, oldest first.
type ListEventsRequest struct {
	Since int64  `json:"since,omitempty"`
	Run   string `json:"run,omitempty"`
	Limit int    `json:"limit,omitempty"` // 0 means 1000
}

// ListEventsResponse holds events. LastSeq is the newest event in the record, even when it is not
// in the list.
type ListEventsResponse struct {
	Events  []agency.Event `json:"events"`
	LastSeq int64          `json:"last_seq"`
}

// DoctorRequest holds the caller's directory, and the environment that its runners would get.
type DoctorRequest struct {
	Dir    string         `json:"dir,omitempty"`
	Env    agency.Environ `json:"env,omitempty"`
	Config string         `json:"config,omitempty"`
	// Sandbox looks at nothing but the sandboxes of agents, by trying to get out of them.
	Sandbox bool `json:"sandbox,omitempty"`
}

// DoctorResponse is a list of findings.
type DoctorResponse struct {
	Checks []Check `json:"checks"`
	// Trials are what was tried from inside each sandbox, when the request asked for it. It is never
	// null.
	Trials []agency.SandboxTrial `json:"trials"`
}

// Check is one finding of the doctor. Level is ok, note, warning or error; Fix is a command that
// can be pasted.
type Check struct {
	Name  string `json:"name"`
	Level string `json:"level"`
	Text  string `json:"text"`
	Fix   string `json:"fix,omitempty"`
}

// DaemonStatusResponse describes the daemon.
type DaemonStatusResponse struct {
	PID       int          `json:"pid"`
	Version   string       `json:"version"`
	StartedAt time.Time    `json:"started_at"`
	Socket    string       `json:"socket"`
	Home      string       `json:"home"`
	Log       string       `json:"log"`
	LiveRuns  int          `json:"live_runs"`
	LastSeq   int64        `json:"last_seq"`
	Config    DaemonConfig `json:"config"`
}

// DaemonConfig is the configuration that the daemon uses now. The daemon applies a changed file by
// itself.
type DaemonConfig struct {
	Path         string    `json:"path"`
	ReadAt       time.Time `json:"read_at"`
	Problem      string    `json:"problem"`       // why the current file is not used; empty when it is
	NeedsRestart []string  `json:"needs_restart"` // changed keys that take effect only when the daemon starts again
}
