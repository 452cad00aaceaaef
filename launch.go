package agency

import (
	"fmt"
	"time"
)

// CommandRequest describes one attempt that needs a command line.
type CommandRequest struct {
	Runner      Runner
	Exec        string   // the program as configured: a name or a path
	DefaultArgs []string // from the configuration, before all other arguments
	Model       string   // empty leaves the choice to the agent
	Headless    bool
	PromptFile  string // absolute path of the task
	Worktree    string // absolute path
	RunID       RunID
	Attempt     int
	// ConversationID is the id of an earlier conversation when Resume is set, else a fresh UUID for
	// agents that accept one. Without one, a resumed agent begins a new conversation in the same
	// worktree.
	ConversationID string
	Resume         bool
	Env            []string // the runner's, complete except for AGENCY_*; PATH and HOME are looked up there
	AttemptDir     string   // absolute path; Command.Files go there
	Hook           []string // argv of the command that an agent's hooks call; the kind of the runner is appended
	// SystemPrompt is the agent's role, in addition to the instructions for every agent; empty for
	// none.
	SystemPrompt string
	// SkipPermissions makes the agent act without asking for permission.
	SkipPermissions bool
}

// Command is how to start a runner.
type Command struct {
	Argv           []string // Argv[0] is an absolute path
	Env            []string // additions, NAME=value
	Stdin          string   // file that a headless runner reads; empty is /dev/null
	ConversationID string   // empty when the agent chooses its id after the start
	// Files are written to CommandRequest.AttemptDir before the start: name and content.
	Files map[string][]byte
}

// SetupCommand is a program that prepares a worktree before its runner starts.
type SetupCommand struct {
	Argv    []string // Argv[0] is an absolute path
	Dir     string
	Env     []string // complete
	Mark    string   // the entry of Env that distinguishes its processes from all others
	Log     string   // the file to which its output is appended
	Timeout time.Duration
}

// Launch is everything that a wrapper needs to run one attempt. It holds the environment and the
// token, so it travels in a file of mode 0600, which the wrapper deletes as soon as it has read it.
type Launch struct {
	RunID      RunID         `json:"run_id"`
	Attempt    int           `json:"attempt"`
	Token      string        `json:"token"`
	RunnerKind RunnerKind    `json:"runner_kind"`
	Argv       []string      `json:"argv"` // Argv[0] is an absolute path
	Env        Environ       `json:"env"`
	Dir        string        `json:"dir"`         // the worktree
	AttemptDir string        `json:"attempt_dir"` // folder of logs and records
	Socket     string        `json:"socket"`      // the daemon's
	Lock       string        `json:"lock"`        // the file whose kernel lock the daemon holds
	Headless   bool          `json:"headless"`
	Stdin      string        `json:"stdin"`           // file that a headless runner reads; empty is /dev/null
	TimeLimit  time.Duration `json:"time_limit"`      // 0 is none
	Grace      time.Duration `json:"grace"`           // between TERM and KILL
	LogBytes   int64         `json:"log_bytes"`       // size at which a log loses its oldest part
	Waits      bool          `json:"waits,omitempty"` // the runner starts when the daemon says so
	Trace      bool          `json:"trace,omitempty"` // the wrapper times its steps
}

// AttemptMark returns the variables with which the environment of every process of an attempt
// begins, and of no other process.
func AttemptMark(id RunID, attempt int) []string {
	return []string{"AGENCY_RUN_ID=" + string(id), fmt.Sprintf("AGENCY_ATTEMPT=%d", attempt)}
}

// WrapperHello is the first message of a wrapper to the daemon.
type WrapperHello struct {
	RunID   RunID   `json:"run_id"`
	Attempt int     `json:"attempt"`
	Token   string  `json:"token"`
	Wrapper Process `json:"wrapper"`
	Version int     `json:"version"` // of the messages that follow
}

// WrapperUpdate is all that a wrapper knows of its attempt. Each update is complete, so repeating
// one is harmless.
type WrapperUpdate struct {
	Start      *Start     `json:"start,omitempty"`
	Exit       *Exit      `json:"exit,omitempty"`
	Output     *time.Time `json:"output,omitempty"` // when the runner last wrote something
	EventDraft *time.Time `json:"news,omitempty"`   // when it last wrote more than a repetition
	// LogLost is how many bytes of the output are missing in its log because the disk was full.
	LogLost int64 `json:"log_lost,omitempty"`
	// Spans are the steps of the start, if Launch.Trace asked for them.
	Spans []Span `json:"spans,omitempty"`
}

// RunSettings are the parts of a caller's configuration that an attempt of a run depends on.
type RunSettings struct {
	Exec        string   // of the run's runner
	DefaultArgs []string // of the run's runner
	Handle      HandleFormat
	EnvDeny     []string // patterns of the variable names that a runner does not get
	Grace       time.Duration
	LogBytes    int64
	Config      string   // the configuration file, for calls of agency by the runner; empty for none
	Env         []string // NAME=value for the runners of a later attempt; the record stores no values
}
