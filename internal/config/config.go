// Package config reads TOML and environment into one validated Config; every problem has its place
// and a way out.
package config

import (
	"log/slog"
	"slices"
	"time"

	"agency"
	"agency/internal/document"
	"agency/internal/handle"
)

// Config holds all settings of a user, validated, with defaults for the others. It does not change
// after Load.
type Config struct {
	// Path is the absolute path of the configuration file. Exists reports whether the file exists;
	// without it the defaults apply.
	Path   string
	Exists bool
	Home   string // data root, absolute
	// Socket is where the daemon listens: absolute, and short enough for the kernel. SocketNote is
	// a sentence for the user when that is not the usual place, else empty.
	Socket     string
	SocketNote string
	LogLevel   slog.Level

	Defaults  Defaults
	IDs       IDs
	Runners   map[agency.RunnerKind]Runner // one for every kind but custom
	Custom    map[string]Runner            // by name; never nil
	Tmux      Tmux
	Logs      Logs
	Env       Env
	Sandbox   Sandbox
	Resources agency.Resources // of runs that choose none
	Watchdog  Watchdog
	Landing   agency.LandingSettings // where agency.toml leaves them open
	Queue     Queue
	Stop      Stop
	Session   Session
	DB        DB
	Disk      Disk
	Worktrees Worktrees
	MCP       MCP
	Notify    Notify
	TUI       TUI
	Presets   map[string]Preset // by name; never nil

	origins []Origin
}

// Defaults are the values for settings that a run leaves open.
type Defaults struct {
	Runner   string // a kind, or the name of a custom runner
	Base     string // what a run starts from, as a git reference
	Headless bool
	Mode     agency.Mode // empty is terminal or, with Headless, headless
}

// IDs holds the settings for handles.
type IDs struct {
	Format handle.Format
}

// Runner is a program with its default arguments. Those of a custom runner may contain the
// placeholders {prompt_file}, {worktree} and {run_id}.
type Runner struct {
	Exec        string // a name to look up on PATH, or an absolute path
	DefaultArgs []string
	Protocol    string // that a custom runner speaks: agency.ACP, or none
}

// Tmux selects the tmux server.
type Tmux struct {
	Socket string // empty is the user's default server, else a name (tmux -L) or an absolute path (tmux -S)
}

// Logs limits the logs of a runner's output.
type Logs struct {
	MaxBytes int64 // of each log
}

// Env selects the variables that runners do not inherit.
type Env struct {
	Deny []string // patterns of names, by the rules of path.Match
}

// Sandbox holds the sandbox of runs that choose none, and what is added to every sandbox.
type Sandbox struct {
	agency.Sandbox
	agency.SandboxSettings
	Image string // of the level container, for repositories that name none
}

// Watchdog selects the runs that are watched, and when an inactive one leads to an alert.
type Watchdog struct {
	StallThreshold  time.Duration
	PollInterval    time.Duration
	StuckIntervals  int // number of PollIntervals without a sign of life
	WorkerTags      []string
	OrchestratorTag string
	WorkerPattern   string // a regular expression for names; empty matches every name
	PreviewLines    int    // of output in an alert
	// ErrorPatterns are regular expressions: an output line that one of them matches from its
	// beginning is an error.
	ErrorPatterns []string
}

// Stop holds the settings for stopping a run.
type Stop struct {
	Grace time.Duration // between the request to a process to end and its kill
}

// Queue holds the settings for landing queues.
type Queue struct {
	Batch    int    // how many entries are checked together at most
	Parallel int    // in how many worktrees of a repository checks run at the same time at most
	Approve  string // ApproveUser or ApproveAgents: whether agents may approve entries
}

// The values of Queue.Approve.
const (
	ApproveUser   = "user"
	ApproveAgents = "agents" // too
)

// Session holds the settings for sessions.
type Session struct {
	StatusDir string // absolute, or relative to the root of the repository
}

// DB holds the settings for the record.
type DB struct {
	Backups int // number of automatic backups that are kept; 0 makes none
}

// Disk holds the minimum free space.
type Disk struct {
	MinFree int64 // bytes, on the disk of the data root; on a small disk a tenth is enough. 0 is no limit
}

// Worktrees holds the settings for worktrees.
type Worktrees struct {
	// Standby is how many worktrees are made ahead for a repository where that saves time; 0 makes
	// none.
	Standby int
}

// MCP limits what agents may do that start other agents, by the tools, by commands, or over the
// socket.
type MCP struct {
	Allow       []string // words of Allowances
	MaxChildren int      // live runs that a run may have started
	MaxDepth    int      // generations of runs below those of the user
}

// Allowances returns what an agent may request for a new run only when [mcp] allow names it.
func Allowances() []string {
	return []string{AllowShell, AllowCustom, AllowArgs, AllowEnv, AllowSkipPermissions}
}

// The allowances.
const (
	AllowShell           = "shell"            // a script as the prompt
	AllowCustom          = "custom"           // any [runners.custom.NAME]
	AllowArgs            = "args"             // arguments for the runner
	AllowEnv             = "env"              // variables, and the environment of the caller
	AllowSkipPermissions = "skip_permissions" // an agent that never asks for permission, started by one that does
)

// Allows reports whether agents are allowed something.
func (m *MCP) Allows(what string) bool { return slices.Contains(m.Allow, what) }

// Origin is the source of the value of one key.
type Origin struct {
	Key   string `json:"key"`   // as in the file: "logs.max_bytes"; "home", "socket" and "log_level" have no key there
	Value string `json:"value"` // as it would be written in TOML
	From  string `json:"from"`  // "default", a file name and line, or the name of an environment variable
}

// Text returns a text without its quotes, and any other value as it would be written in TOML.
func (o *Origin) Text() string {
	root, _ := document.TOML([]byte("value = " + o.Value))
	if v := root.Lookup("value"); v != nil && v.Kind == document.Text {
		return v.Text
	}
	return o.Value
}

// Origins returns all keys, in the order of the file format.
func (c *Config) Origins() []Origin { return slices.Clone(c.origins) }

// placeholders are the placeholders in the arguments of a custom runner.
var placeholders = []string{"prompt_file", "worktree", "run_id"}

func defaults() *Config {
	format, _ := handle.ParseFormat(handle.MMDDSlugHash) // a built-in format: always valid
	return &Config{
		LogLevel:  slog.LevelInfo,
		Resources: agency.AnyAmount(),
		Defaults:  Defaults{Runner: string(RunnerKinds()[0]), Base: "HEAD"},
		IDs:       IDs{Format: format},
		Runners:   defaultRunners(),
		Custom:    map[string]Runner{},
		Logs:      Logs{MaxBytes: 1 << 30},
		Env:       Env{Deny: []string{}},
		Sandbox: Sandbox{
			Sandbox:         agency.Sandbox{Level: agency.SandboxWorktree, Network: agency.NetworkFull},
			SandboxSettings: agency.SandboxSettings{Read: []string{}, Write: []string{}, Env: []string{}, Hosts: []string{}},
		},
		Watchdog: Watchdog{
			StallThreshold: agency.StallThreshold, PollInterval: 30 * time.Second, StuckIntervals: 3,
			WorkerTags: []string{"worker"}, OrchestratorTag: "orchestrator", PreviewLines: 5, ErrorPatterns: []string{},
		},
		Landing: agency.LandingSettings{
			Method: agency.LandSquash, Uncommitted: agency.RefuseUncommitted, Checkout: agency.CheckoutDisjoint, After: agency.AfterKeep,
			Remote: "origin", Forge: agency.ForgeAuto,
		},
		Queue:     Queue{Batch: 5, Parallel: 2, Approve: ApproveUser},
		Stop:      Stop{Grace: 10 * time.Second},
		Session:   Session{StatusDir: ".agency/status"},
		DB:        DB{Backups: 7},
		Worktrees: Worktrees{Standby: 1},
		Disk:      Disk{MinFree: 512 << 20},
		MCP:       MCP{Allow: []string{}, MaxChildren: 32, MaxDepth: 3},
		Notify:    Notify{Channels: map[string]Channel{}},
		TUI:       TUI{Keys: map[string][]string{}, Views: map[string]string{}},
		Presets:   map[string]Preset{},
	}
}
