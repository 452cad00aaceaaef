// Package agency is the vocabulary of agency: the records, ids, errors and events that all rooms
// share. It is pure: no input or output, no clock, no goroutine. The rooms below internal make the
// decisions.
//
// Where to begin:
//   - [Run] and [Attempt] are the record, and [Next] is the one transition function of attempts.
//   - [Evidence] adds up to an [AgentState], from which the [Status] that users see is derived; an
//     [Explanation] gives the reasons.
//   - An [Alert] means that a user or an agent must act on a run, a session or the machine.
//   - A [Plan] is what a [Session] executes.
//   - [Error] is the one error type that reaches users, and [Code] is its kind.
package agency

import (
	"path"
	"time"
)

// RunnerKind is the kind of program that works on a run. It selects the harness.
type RunnerKind string

// The kinds that are not coding agents. Those of the agents are in the registry of
// internal/harness.
const (
	Shell  RunnerKind = "shell"  // the prompt is a script
	Custom RunnerKind = "custom" // an executable from the configuration
)

// Runner is the agent program of a run.
type Runner struct {
	Kind RunnerKind `json:"kind"`
	Name string     `json:"name"` // the kind, or for a custom runner its name in the configuration
	Args []string   `json:"args"` // what the user added for this run; never null
}

// Repo is a git repository that agency works in.
type Repo struct {
	Fingerprint string `json:"fingerprint"` // the UUID kept in the git common directory; names folders and locks
	Root        string `json:"root"`        // canonical path of the main worktree, or of the git directory when bare
	CommonDir   string `json:"-"`           // git common directory
	Toplevel    string `json:"-"`           // the worktree of the caller's working directory; empty when bare
	// Hooks is the folder of hooks that core.hooksPath names relative to a worktree, so that they
	// come with its files. Empty means the repository's own folder, or one of the user's.
	Hooks string `json:"-"`
	// GitConfig is the name of the git configuration that a run recorded; empty is the repository's
	// own, without its programs. GitPrograms is a hash of all settings that named programs then;
	// empty means that there were none.
	GitConfig   string `json:"-"`
	GitPrograms string `json:"-"`
	// GitRemotes is the name of the settings that say where its remotes are and how git reaches them,
	// which a run recorded; empty means that none were recorded.
	GitRemotes string `json:"-"`
}

// FromStandby reports whether the run took a worktree that was made ahead: its folder has a name of
// its own.
func (r *Run) FromStandby() bool { return path.Base(r.Worktree) != string(r.ID) }

// Input is a file of the repository that a run was given, with its content at that time.
type Input struct {
	Path   string `json:"path"`   // relative to the repository root, slashes
	Size   int64  `json:"size"`   // bytes
	SHA256 string `json:"sha256"` // of its content, in hex
}

// TaskFile is the file in a run's directory with the task of the run, and the file in an attempt's
// directory with what the attempt was asked in addition.
const TaskFile = "prompt.md"

// Run is the durable record of one task given to one agent: a worktree, a branch, a run directory,
// a tmux session. They are never shared and never reused.
type Run struct {
	ID       RunID    `json:"id"`
	Seq      int64    `json:"seq"` // order of creation
	Handle   string   `json:"handle"`
	Name     string   `json:"name"` // empty when none was given
	Type     string   `json:"type"`
	Repo     Repo     `json:"repo"`
	Base     string   `json:"base_ref"`    // as the user wrote it; for the HEAD of a linked worktree the branch there
	Commit   string   `json:"base_commit"` // the commit of Base at creation
	Branch   string   `json:"branch"`
	Worktree string   `json:"worktree_path"`
	Dir      string   `json:"run_dir"`
	Runner   Runner   `json:"runner"`
	Model    string   `json:"model"`
	Tags     []string `json:"tags"` // never null
	// Owner is who started it: the id of a run, or User.
	Owner string `json:"owner"`
	// MaxMinutes is the time limit of each attempt; 0 is none.
	MaxMinutes int `json:"max_minutes"`
	// StallAfterMS is how long the agent may give no sign before it counts as stalled, in
	// milliseconds; 0 takes the configuration's value.
	StallAfterMS int64 `json:"stall_after_ms"`
	// StuckIntervals is how many intervals of the watchdog the agent may give no sign of life
	// before it counts as stuck; 0 takes the configuration's value.
	StuckIntervals int    `json:"stuck_intervals"`
	Preset         string `json:"preset"` // the preset that it was made with; empty when none
	// Sandbox is how its agent is kept apart, in every attempt.
	Sandbox Sandbox `json:"sandbox"`
	// Resources are how much of the machine each attempt may use.
	Resources  Resources `json:"resources"`
	ConfigHash string    `json:"config_hash"`
	Host       string    `json:"host"`

	CreatedAt time.Time  `json:"created_at"`
	UpdatedAt time.Time  `json:"updated_at"`
	RemovedAt *time.Time `json:"removed_at"`
	// Removing is the removal that was requested. It is set before anything of the run is deleted
	// and stays until RemovedAt is set or the removal has failed. The next daemon finishes one that
	// was interrupted. It is in the record only.
	Removing  *Removing    `json:"-"`
	MergedAt  *time.Time   `json:"merged_at"`
	Abandoned bool         `json:"abandoned"`
	Flag      *Flag        `json:"flag"` // why a user or agent must look at the run; null when it has none
	PR        *PullRequest `json:"pr"`   // null when agency knows none
	// Changes is what it changed since its base, as counted when its agent last rested or ended; nil
	// before that. It is in the record only.
	Changes *ChangeSize `json:"-"`

	Attempt Attempt `json:"attempt"` // the newest one
	// Unrecorded reports whether a full disk keeps the newest state of the attempt out of the
	// record.
	Unrecorded bool `json:"-"`
}

// Removing holds the parameters of a requested removal.
type Removing struct {
	At           time.Time `json:"at"`
	Discard      bool      `json:"discard"`
	DeleteBranch bool      `json:"delete_branch"`
}

// Ref returns what users call the run: its name, or else its handle.
func (r *Run) Ref() string {
	if r.Name != "" {
		return r.Name
	}
	return r.Handle
}

// Session returns the name of the run's tmux session.
func (r *Run) Session() string { return SessionPrefix + string(r.ID) }

// SessionPrefix begins the name of every tmux session that belongs to agency.
const SessionPrefix = "agency_"

// Activity is the measurements that distinguish an agent that works without output from one that
// hangs.
type Activity struct {
	CPU     time.Duration // used by its processes
	FilesAt time.Time     // the newest change of a file in its worktree; zero is unknown
}

// FlagReasonLimit is the maximum length of a flag's reason, in characters.
const FlagReasonLimit = 1000

// Flag means that a user or agent must look at a run, whatever its agent does, until the flag is
// removed.
type Flag struct {
	Reason string    `json:"reason"` // why the run needs a look; untrusted
	By     string    `json:"by"`     // who set it: the id of a run, user, checks or landing
	At     time.Time `json:"at"`     // when it was set
}

// Cause returns the cause of the alert about a flag. Another flag is another episode, even with the
// same reason.
func (f *Flag) Cause() string { return "flag " + stamp(f.At) }
