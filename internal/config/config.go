// Package config reads TOML and environment into one validated Config; every problem comes with its place and a way out.
package config

import (
	"log/slog"
	"slices"
	"time"

	"agency"
)

// Config is everything that a user can set, checked, with defaults where nothing is set. It does not change after Load.
type Config struct {
	// Path is the file that is read, absolute. Exists says whether it is there; without it the defaults hold.
	Path   string
	Exists bool
	Home   string // data root, absolute
	// Socket is where the daemon listens: absolute, and short enough for the kernel. SocketNote is a sentence for
	// people when that is not the usual place, and else empty.
	Socket     string
	SocketNote string
	LogLevel   slog.Level

	Defaults Defaults
	IDs      IDs
	Runners  map[agency.RunnerKind]Runner // one for every kind but custom
	Custom   map[string]Runner            // by name; never nil
	Tmux     Tmux
	Logs     Logs
	Env      Env
	Watchdog Watchdog
	Stop     Stop
	Session  Session
	DB       DB
	Disk     Disk
	MCP      MCP
	Notify   Notify
	Presets  map[string]Preset // by name; never nil

	origins []Origin
}

// Defaults stand in for what a run does not say.
type Defaults struct {
	Runner   string // a kind, or the name of a custom runner
	Base     string // what a run starts from, as git understands it
	Headless bool
}

// IDs is how handles are made.
type IDs struct {
	Format agency.HandleFormat
}

// Runner is a program and the arguments that it always gets. Those of a custom runner may hold the placeholders
// {prompt_file}, {worktree} and {run_id}.
type Runner struct {
	Exec        string // a name to look up on PATH, or an absolute path
	DefaultArgs []string
}

// Tmux chooses the tmux server.
type Tmux struct {
	Socket string // empty is the user's default server, else a name (tmux -L) or an absolute path (tmux -S)
}

// Logs bounds what is kept of a runner's output.
type Logs struct {
	MaxBytes int64 // of each log
}

// Env is what runners do not inherit.
type Env struct {
	Deny []string // patterns of names, by the rules of path.Match
}

// Watchdog is which runs are watched, and when somebody is told that one has gone quiet.
type Watchdog struct {
	StallThreshold  time.Duration
	PollInterval    time.Duration
	StuckIntervals  int // of PollInterval without a sign of life
	WorkerTags      []string
	OrchestratorTag string
	WorkerPattern   string // a regular expression for names; empty is every name
	PreviewLines    int    // of output in an alert
	// ErrorPatterns are regular expressions: a line of output that one of them matches from its beginning is an error.
	ErrorPatterns []string
}

// Stop is how a run is stopped.
type Stop struct {
	Grace time.Duration // between asking a process to end and ending it
}

// Session is where sessions leave their status files.
type Session struct {
	StatusDir string // absolute, or relative to the root of the repository
}

// DB is how the record is looked after.
type DB struct {
	Backups int // that agency makes by itself and keeps; 0 makes none
}

// Disk is how much of it must be free.
type Disk struct {
	MinFree int64 // bytes, on the disk of the data root; of a small disk a tenth is enough. 0 is no limit
}

// MCP bounds what agents may do that start other agents, by the tools, by commands, or over the socket.
type MCP struct {
	Allow       []string // words of Allowances
	MaxChildren int      // live runs that a run may have started
	MaxDepth    int      // generations of runs below those of a person
}

// Allowances are what an agent may ask of a new run only when [mcp] allow names it.
func Allowances() []string {
	return []string{AllowShell, AllowCustom, AllowArgs, AllowEnv, AllowSkipPermissions}
}

// The allowances.
const (
	AllowShell           = "shell"            // a script as the prompt
	AllowCustom          = "custom"           // any [runners.custom.NAME]
	AllowArgs            = "args"             // arguments for the runner
	AllowEnv             = "env"              // variables, and the environment of the caller
	AllowSkipPermissions = "skip_permissions" // an agent that asks for leave for nothing, of one that does
)

// Allows reports whether agents are allowed something.
func (m *MCP) Allows(what string) bool { return slices.Contains(m.Allow, what) }

// Origin says where the value of one key came from.
type Origin struct {
	Key   string `json:"key"`   // as in the file: "logs.max_bytes"; "home", "socket" and "log_level" have no key there
	Value string `json:"value"` // as it would be written in TOML
	From  string `json:"from"`  // "default", a file name and line, or the name of an environment variable
}

// Origins are all keys, in the order of the file format.
func (c *Config) Origins() []Origin { return slices.Clone(c.origins) }

// placeholders are what the arguments of a custom runner may hold.
var placeholders = []string{"prompt_file", "worktree", "run_id"}

func defaults() *Config {
	format, _ := agency.ParseHandleFormat(agency.FormatMMDDSlugHash) // one of its own names
	return &Config{
		LogLevel: slog.LevelInfo,
		Defaults: Defaults{Runner: string(RunnerKinds()[0]), Base: "HEAD"},
		IDs:      IDs{Format: format},
		Runners:  defaultRunners(),
		Custom:   map[string]Runner{},
		Logs:     Logs{MaxBytes: 1 << 30},
		Env:      Env{Deny: []string{}},
		Watchdog: Watchdog{
			StallThreshold: agency.StallThreshold, PollInterval: 30 * time.Second, StuckIntervals: 3,
			WorkerTags: []string{"worker"}, OrchestratorTag: "orchestrator", PreviewLines: 5, ErrorPatterns: []string{},
		},
		Stop:    Stop{Grace: 10 * time.Second},
		Session: Session{StatusDir: ".agency/status"},
		DB:      DB{Backups: 7},
		Disk:    Disk{MinFree: 512 << 20},
		MCP:     MCP{Allow: []string{}, MaxChildren: 32, MaxDepth: 3},
		Notify:  Notify{Channels: map[string]Channel{}},
		Presets: map[string]Preset{},
	}
}
