package api

import (
	"time"

	"agency"
)

// ListEventsRequest asks for events after Since, oldest first.
type ListEventsRequest struct {
	Since int64  `json:"since,omitempty"` // the number of an event; only later events are listed
	Run   string `json:"run,omitempty"`   // only events of this run; empty means all
	Limit int    `json:"limit,omitempty"` // how many, at most 1000; 0 means 1000
}

// ListEventsResponse holds events.
type ListEventsResponse struct {
	Events  []agency.Event `json:"events"`   // the oldest first
	LastSeq int64          `json:"last_seq"` // the number of the newest event in the record, even when it is not in the list; 0 when there is none
}

// DoctorRequest holds the caller's directory, and the environment that its runners would get.
type DoctorRequest struct {
	Dir    string         `json:"dir,omitempty"`    // the caller's working directory
	Env    agency.Environ `json:"env,omitempty"`    // the caller's environment, which its runners would get
	Config string         `json:"config,omitempty"` // the caller's configuration file; empty means the default one
	// Sandbox looks at nothing but the sandboxes of agents, by trying to get out of them.
	Sandbox bool `json:"sandbox,omitempty"`
}

// DoctorResponse is a list of findings.
type DoctorResponse struct {
	Checks []Check `json:"checks"` // the findings
	// Trials are what was tried from inside each sandbox, when the request asked for it. It is never
	// null.
	Trials []agency.SandboxTrial `json:"trials"`
}

// Check is one finding of the doctor.
type Check struct {
	Name  string `json:"name"`          // what was looked at, such as git or daemon
	Level string `json:"level"`         // ok, note, warning or error
	Text  string `json:"text"`          // what was found
	Fix   string `json:"fix,omitempty"` // what helps, most often a command that can be pasted; left out when nothing is known
}

// DaemonStatusResponse describes the daemon.
type DaemonStatusResponse struct {
	PID       int          `json:"pid"`        // the number of its process
	Version   string       `json:"version"`    // of the program that it runs
	StartedAt time.Time    `json:"started_at"` // when it began
	Socket    string       `json:"socket"`     // the path of the socket that it listens on
	Home      string       `json:"home"`       // the data root
	Log       string       `json:"log"`        // the path of its log
	LiveRuns  int          `json:"live_runs"`  // how many runs have not ended
	LastSeq   int64        `json:"last_seq"`   // the number of the newest event; 0 when there is none
	Config    DaemonConfig `json:"config"`     // the configuration that it uses now
}

// DaemonConfig is the configuration that the daemon uses now. The daemon applies a changed file by
// itself.
type DaemonConfig struct {
	Path         string    `json:"path"`          // of the configuration file, which need not exist
	ReadAt       time.Time `json:"read_at"`       // when the daemon read it
	Problem      string    `json:"problem"`       // why the current file is not used; empty when it is
	NeedsRestart []string  `json:"needs_restart"` // changed keys that take effect only when the daemon starts again
}
