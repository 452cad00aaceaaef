package agency

import (
	"fmt"
	"time"
)

// CommandRequest is one attempt that needs a command line.
type CommandRequest struct {
	Runner      Runner
	Exec        string   // the program as configured: a name or a path
	DefaultArgs []string // from the configuration, before everything else
	Model       string   // empty leaves the choice to the agent
	Headless    bool
	PromptFile  string // absolute path of the task
	Worktree    string // absolute path
	RunID       RunID
	Attempt     int
	// ConversationID is the id of an earlier conversation when Resume is set, else a fresh UUID for agents that let
	// their caller choose. Without one a resumed agent begins a new conversation in the same worktree.
	ConversationID string
	Resume         bool
	Env            []string // the runner's, complete but for AGENCY_*; PATH and HOME are looked up there
	AttemptDir     string   // absolute path; Command.Files go there
	Hook           []string // argv of the command that an agent's hooks call; the kind of the runner is appended
	// SystemPrompt is the agent's role, beside what agency tells every agent; empty when it has none of its own.
	SystemPrompt string
	// SkipPermissions has the agent ask for leave for nothing that it does.
	SkipPermissions bool
}

// Command is how to start a runner.
type Command struct {
	Argv           []string // Argv[0] is an absolute path
	Env            []string // additions, NAME=value
	Stdin          string   // file that a headless runner reads; empty is /dev/null
	ConversationID string   // empty when the agent tells its id only after the start
	// Files must stand in CommandRequest.AttemptDir before the start: name and content.
	Files map[string][]byte
}

// SetupCommand is a program that prepares a worktree before its runner starts.
type SetupCommand struct {
	Argv    []string // Argv[0] is an absolute path
	Dir     string
	Env     []string // complete
	Mark    string   // the entry of Env that tells its processes from all others
	Log     string   // the file that its output is added to
	Timeout time.Duration
}

// Launch is everything a wrapper needs to run one attempt. It holds the environment and the token, so it travels in a
// file of mode 0600 that the wrapper deletes as soon as it has read it.
type Launch struct {
	RunID      RunID         `json:"run_id"`
	Attempt    int           `json:"attempt"`
	Token      string        `json:"token"`
	RunnerKind RunnerKind    `json:"runner_kind"`
	Argv       []string      `json:"argv"` // Argv[0] is an absolute path
	Env        Environ       `json:"env"`
	Dir        string        `json:"dir"`         // the worktree
	AttemptDir string        `json:"attempt_dir"` // where logs and records go
	Socket     string        `json:"socket"`      // the daemon's
	Lock       string        `json:"lock"`        // the file whose kernel lock the daemon holds
	Headless   bool          `json:"headless"`
	Stdin      string        `json:"stdin"`      // file that a headless runner reads; empty is /dev/null
	TimeLimit  time.Duration `json:"time_limit"` // 0 is none
	Grace      time.Duration `json:"grace"`      // between TERM and KILL
	LogBytes   int64         `json:"log_bytes"`  // size at which a log loses its oldest part
}

// AttemptMark is what the environment of every process of an attempt begins with, and no other has.
func AttemptMark(id RunID, attempt int) []string {
	return []string{"AGENCY_RUN_ID=" + string(id), fmt.Sprintf("AGENCY_ATTEMPT=%d", attempt)}
}

// WrapperHello is how a wrapper introduces itself to the daemon.
type WrapperHello struct {
	RunID   RunID   `json:"run_id"`
	Attempt int     `json:"attempt"`
	Token   string  `json:"token"`
	Wrapper Process `json:"wrapper"`
	Version int     `json:"version"` // of the messages that follow
}

// WrapperUpdate is everything that a wrapper knows of its attempt, whole each time, so that hearing it again is harmless.
type WrapperUpdate struct {
	Start      *Start     `json:"start,omitempty"`
	Exit       *Exit      `json:"exit,omitempty"`
	Output     *time.Time `json:"output,omitempty"` // when the runner last wrote something
	EventDraft *time.Time `json:"news,omitempty"`   // when what it wrote last was not only a repetition
	// LogLost is how many bytes of the output are not in its log, because the disk did not take them.
	LogLost int64 `json:"log_lost,omitempty"`
}

// RunSettings are the parts of a caller's configuration that an attempt of a run depends on.
type RunSettings struct {
	Exec        string   // of the run's runner
	DefaultArgs []string // of the run's runner
	Handle      HandleFormat
	EnvDeny     []string // patterns of names that a runner does not get
	Grace       time.Duration
	LogBytes    int64
	Config      string   // the configuration file, for what the runner itself asks of agency; empty for none
	Env         []string // NAME=value for the runners of a later attempt: the record keeps no values
}
