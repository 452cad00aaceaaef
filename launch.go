package agency

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"agency/internal/handle"
)

// ACP names the Agent Client Protocol, which any program can speak.
const ACP = "acp"

// CommandRequest describes one attempt that needs a command line.
type CommandRequest struct {
	Runner      Runner
	Exec        string   // the program as configured: a name or a path
	DefaultArgs []string // from the configuration, before all other arguments
	Model       string   // empty leaves the choice to the agent
	Headless    bool
	Mode        Mode
	Protocol    string // that a custom runner speaks, as configured
	PromptFile  string // absolute path of the task
	Worktree    string // absolute path
	RunID       RunID
	Attempt     int
	// ConversationID is the id of an earlier conversation when Resume is set, else a fresh UUID for
	// agents that accept one. Without one, a resumed agent begins a new conversation in the same
	// worktree.
	ConversationID string
	Resume         bool
	// Silent means that the agent gets no message at the start, and waits for one.
	Silent     bool
	Env        []string // the runner's, complete except for AGENCY_*; PATH and HOME are looked up there
	AttemptDir string   // absolute path; Command.Files go there
	Hook       []string // argv of the command that an agent's hooks call; the kind of the runner is appended
	// SystemPrompt is the agent's role, in addition to the instructions for every agent; empty for
	// none.
	SystemPrompt string
	// SkipPermissions makes the agent act without asking for permission.
	SkipPermissions bool
	Sandbox         SandboxLevel
}

// Command is how to start a runner.
type Command struct {
	Argv           []string // Argv[0] is an absolute path
	Env            []string // additions, NAME=value
	Stdin          string   // file that a headless runner reads; empty is /dev/null
	Opening        string   // the first message to a runner in the mode protocol; empty when it waits for one
	ConversationID string   // empty when the agent chooses its id after the start
	// Files are written to CommandRequest.AttemptDir before the start: name and content.
	Files map[string][]byte
}

// SetupCommand is a program that prepares a worktree before its runner starts, or checks it.
type SetupCommand struct {
	Argv    []string // Argv[0] is an absolute path
	Dir     string
	Env     []string // complete
	Mark    string   // the entry of Env that distinguishes its processes from all others
	Log     string   // the file to which its output is appended
	Timeout time.Duration
	// Hosts are what it reaches through a proxy, if Argv starts a sandbox with one; nil otherwise.
	Hosts []string
	// Used is called at its end with what it did through the proxy; nil without one.
	Used func(NetworkUse)
}

// Launch is everything that a wrapper needs to run one attempt. It holds the environment and the
// token, so it travels in a file of mode 0600, which the wrapper deletes as soon as it has read it.
type Launch struct {
	RunID      RunID      `json:"run_id"`
	Attempt    int        `json:"attempt"`
	Token      string     `json:"token"`
	RunnerKind RunnerKind `json:"runner_kind"`
	Argv       []string   `json:"argv"` // Argv[0] is an absolute path
	Env        Environ    `json:"env"`
	Dir        string     `json:"dir"`         // the worktree
	AttemptDir string     `json:"attempt_dir"` // folder of logs and records
	Socket     string     `json:"socket"`      // the daemon's
	Lock       string     `json:"lock"`        // the file whose kernel lock the daemon holds
	// Confined means that Argv starts a sandbox, and the runner below it.
	Confined bool `json:"confined,omitempty"`
	// Relay is the folder that the sandbox has for RelaySocket, on which the wrapper takes the agent's
	// requests to the daemon; empty for an agent without that.
	Relay string `json:"relay,omitempty"`
	// Outer is the environment outside the sandbox: the runs that the agent starts are based on it.
	// It is nil without a sandbox.
	Outer Environ `json:"outer,omitzero"`
	// Hosts are what the runner reaches through the wrapper's proxy; nil for a sandbox without one.
	Hosts []string `json:"hosts,omitzero"`
	// Ports are those of the runner's container that the wrapper opens on the machine.
	Ports    []int `json:"ports,omitempty"`
	Headless bool  `json:"headless"`
	Mode     Mode  `json:"mode,omitempty"`
	// Protocol is what a custom runner speaks in the mode protocol: ACP.
	Protocol string `json:"protocol,omitempty"`
	// Opening is the first message to a runner in the mode protocol; empty when it waits for one.
	Opening string `json:"opening,omitempty"`
	// OpeningFiles are the absolute paths of what is attached to it.
	OpeningFiles []string `json:"opening_files,omitempty"`
	// Resumes is the conversation that a runner in the mode protocol continues; empty for a new
	// one.
	Resumes string `json:"resumes,omitempty"`
	// Todos is the list of its work that a runner in the mode protocol had in that conversation.
	Todos []Todo `json:"todos,omitempty"`
	// Adopts means that the runner lives, and that its wrapper was killed: the token and the
	// environment are those of the runner.
	Adopts    bool          `json:"adopts,omitempty"`
	Stdin     string        `json:"stdin"`              // file that a headless runner reads; empty is /dev/null
	TimeLimit time.Duration `json:"time_limit"`         // 0 is none
	Resources Resources     `json:"resources,omitzero"` // of the runner and all that it starts
	// Limits are what enforces the resources.
	Limits []EnforcedLimit `json:"limits,omitempty"`
	// Disk are the folders whose sizes together count for Resources.Disk.
	Disk     []string      `json:"disk,omitempty"`
	Grace    time.Duration `json:"grace"`           // between TERM and KILL
	LogBytes int64         `json:"log_bytes"`       // size at which a log loses its oldest part
	Waits    bool          `json:"waits,omitempty"` // the runner starts when the daemon lets it
	Trace    bool          `json:"trace,omitempty"` // the wrapper times its steps
}

// RelaySocket is the socket in Launch.Relay.
const RelaySocket = "agencyd.sock"

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
	Start   *Start     `json:"start,omitempty"`
	Exit    *Exit      `json:"exit,omitempty"`
	Output  *time.Time `json:"output,omitempty"` // when the runner last wrote something
	Changed *time.Time `json:"news,omitempty"`   // when it last wrote more than a repetition
	// LogLost is how many bytes of the output are missing in its log because the disk was full.
	LogLost int64 `json:"log_lost,omitempty"`
	// Network is what a runner with the network allow did with it.
	Network *NetworkUse `json:"network,omitempty"`
	// Limits is how the limits of the runner are enforced, and which it reached.
	Limits *LimitUse `json:"limits,omitempty"`
	// Spans are the steps of the start, if Launch.Trace asked for them.
	Spans []Span `json:"spans,omitempty"`
}

// RunSettings are the parts of a caller's configuration that an attempt of a run depends on.
type RunSettings struct {
	Exec        string   // of the run's runner
	DefaultArgs []string // of the run's runner
	Protocol    string   // of the run's runner
	Handle      handle.Format
	Sandbox     SandboxSettings
	Image       string   // of containers, for repositories that name none
	EnvDeny     []string // patterns of the variable names that a runner does not get
	Grace       time.Duration
	LogBytes    int64
	Config      string   // the configuration file, for calls of agency by the runner; empty for none
	Env         []string // NAME=value for the runners of a later attempt; the record stores no values
}

// Environ is an environment, NAME=value each. In JSON a variable is a string or, when it is not
// valid UTF-8, an object with its bytes: {"base64": "..."}.
type Environ []string

// Lookup returns the value of a variable, or "" for one that is not set. If it is set twice, the
// last one counts, as in a child process.
func (e Environ) Lookup(name string) string {
	for _, kv := range slices.Backward(e) {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value
		}
	}
	return ""
}

// Without returns a copy without the named variables.
func (e Environ) Without(names ...string) Environ {
	return e.WithoutFunc(func(name string) bool { return slices.Contains(names, name) })
}

// author are the variables by which git finds who makes commits: the names, and where the user's
// configuration is.
func author() []string {
	return []string{
		"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "EMAIL",
		"HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM",
	}
}

// Author returns the variables by which git finds who makes commits.
func (e Environ) Author() Environ {
	return e.WithoutFunc(func(name string) bool { return !slices.Contains(author(), name) })
}

// WithoutFunc returns a copy without the variables whose names drop selects, and without entries
// that are not NAME=value.
func (e Environ) WithoutFunc(drop func(name string) bool) Environ {
	return slices.DeleteFunc(slices.Clone(e), func(kv string) bool {
		name, _, ok := strings.Cut(kv, "=")
		return !ok || name == "" || drop(name)
	})
}

type environBytes struct {
	Base64 []byte `json:"base64"`
}

// MarshalJSON writes every variable so that UnmarshalJSON restores its bytes.
func (e Environ) MarshalJSON() ([]byte, error) {
	list := make([]any, 0, len(e))
	for _, kv := range e {
		if utf8.ValidString(kv) {
			list = append(list, kv)
		} else {
			list = append(list, environBytes{[]byte(kv)})
		}
	}
	return json.Marshal(list)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (e *Environ) UnmarshalJSON(data []byte) error {
	var list []json.RawMessage
	if err := json.Unmarshal(data, &list); err != nil {
		return fmt.Errorf("an environment is a list: %w", err)
	}
	*e = make(Environ, 0, len(list))
	for _, item := range list {
		var text string
		if json.Unmarshal(item, &text) != nil {
			var raw environBytes
			if err := json.Unmarshal(item, &raw); err != nil {
				return fmt.Errorf("a variable is a text or its bytes: %w", err)
			}
			text = string(raw.Base64)
		}
		*e = append(*e, text)
	}
	return nil
}

// Span is one step of a request, as a process timed it for AGENCY_TRACE.
type Span struct {
	Process string    `json:"process"` // what the process is: agency, daemon or wrapper
	PID     int       `json:"pid"`
	Lane    int       `json:"lane"` // from 1; spans of one lane of a process do not overlap
	Name    string    `json:"name"`
	Begin   time.Time `json:"begin"`
	End     time.Time `json:"end"`
}
