package api

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"agency"
)

// Run is a run with its derived status: a row of ls, and the answer of most operations.
type Run struct {
	ID           agency.RunID      `json:"id"`              // r_ and a ULID; no other run ever has it
	Handle       string            `json:"handle"`          // the readable name that agency gave it, such as 1122-fix-login-a1b2
	Name         string            `json:"name"`            // the name that the user gave it; empty for none
	Type         string            `json:"type"`            // one word for the kind of task; empty for none
	Status       agency.Label      `json:"status"`          // the word that agency ls shows
	Summary      string            `json:"summary"`         // what the agent asks or reports, or else why the run has its status; may be empty; untrusted
	Problem      string            `json:"problem"`         // "invalid status file: why", or that the wrapper does not answer; empty when all is fine
	Since        time.Time         `json:"since"`           // when agency observed what decides the status
	State        agency.State      `json:"state"`           // what the process of the newest attempt does
	Attempt      int               `json:"attempt"`         // the number of the newest attempt, from 1
	ExitCode     *int              `json:"exit_code"`       // of the newest attempt; null until its runner has exited by itself
	Signal       string            `json:"signal"`          // the signal that ended the newest attempt, such as SIGKILL; empty when none did
	ErrorCode    agency.Code       `json:"error_code"`      // the kind of failure of its newest attempt; empty unless that failed, and for a runner that failed by itself
	Error        string            `json:"error"`           // why the newest attempt failed, in words; empty unless it failed; untrusted
	Repo         string            `json:"repo"`            // the root of its repository: the main worktree, or the git directory of a bare one
	Branch       string            `json:"branch"`          // the branch that agency made for it, without refs/heads/
	BaseCommit   string            `json:"base_commit"`     // the commit that it began at
	Worktree     string            `json:"worktree_path"`   // the absolute path of its worktree
	Standby      bool              `json:"standby"`         // the worktree was made ahead of the run
	RunDir       string            `json:"run_dir"`         // the absolute path of its run directory: prompt, logs and records
	Runner       string            `json:"runner"`          // the name of its runner: the kind, or the name of a custom one in the configuration
	RunnerKind   agency.RunnerKind `json:"runner_kind"`     // the name of a coding agent such as claude_code, or shell, or custom
	Model        string            `json:"model"`           // what its agent reports, or else what was asked for; empty when neither is known
	Headless     bool              `json:"headless"`        // its mode is headless
	Mode         agency.Mode       `json:"mode"`            // how agency speaks with its agent
	Tags         []string          `json:"tags"`            // words by which runs are chosen
	Decided      agency.DecidedBy  `json:"decided_by"`      // what decided the status
	Request      *agency.Request   `json:"request"`         // what the agent's program waits for; null when it waits for nothing
	Conversation string            `json:"conversation_id"` // the agent's own id of its conversation; empty when unknown
	Usage        agency.Usage      `json:"usage"`           // of the conversation, as the agent reports it
	StallAfterMS int64             `json:"stall_after_ms"`  // how long its agent may give no sign before it counts as stalled, in milliseconds; 0 means as configured
	// StuckIntervals is how many intervals of the watchdog without a sign of life are too many; 0
	// means as configured.
	StuckIntervals int    `json:"stuck_intervals"`
	Preset         string `json:"preset"` // the preset that the run was created with; empty when none
	// Sandbox is how far its agent is kept apart from the machine.
	Sandbox agency.SandboxLevel `json:"sandbox"`
	Network agency.Network      `json:"network"` // what its agent reaches from there
	// Enforces describes in words what sandbox and network keep from the agent. It is empty at the
	// level worktree, and never null.
	Enforces []string `json:"enforces"`
	// Image is what the container of the newest attempt was made of; null without one.
	Image *agency.Image `json:"image"`
	// Ports are those of the container of the newest attempt that the machine reaches while it runs;
	// null when there are none.
	Ports *agency.Ports `json:"ports"`
	// Resources are how much of the machine each attempt may use; the attempts have what enforces
	// them.
	Resources agency.Resources `json:"resources"`
	// Limits are what enforces the resources of the newest attempt, and which it reached; null without
	// limits.
	Limits   *agency.LimitUse `json:"limits"`
	PRNumber *int             `json:"pr_number"` // the number of its pull request; null when agency knows none
	// PR is its pull request, as it was when agency last looked; null when it knows none.
	PR *agency.PullRequest `json:"pr"`
	// Diff is what the run changed since its base, as counted when its agent last rested or ended;
	// null before that.
	Diff      *agency.ChangeSize `json:"diff"`
	Flag      *agency.Flag       `json:"flag"`         // why the user or an agent must look at the run; null when it has no flag
	Session   string             `json:"tmux_session"` // the name of its tmux session, whether there is one or not
	CreatedAt time.Time          `json:"created_at"`   // when it was recorded
	StartedAt *time.Time         `json:"started_at"`   // when the runner of the newest attempt started; null before
	EndedAt   *time.Time         `json:"ended_at"`     // when the newest attempt ended; null before
	RemovedAt *time.Time         `json:"removed_at"`   // when it was removed; null until then
	// SnoozedUntil is when its alerts notify again, after all of its open ones were put off; null while
	// one was not. Only run.list tells it.
	SnoozedUntil *time.Time `json:"snoozed_until"`
	// Member is the session of the run, and its agent there; null for a run of no session. Only
	// run.list tells it.
	Member *agency.Membership `json:"session"`
	// Unrecorded is true when the state of the newest attempt is not in the record yet, because it
	// cannot be written to the disk.
	Unrecorded bool `json:"unrecorded"`
}

// NewRun returns the view of a record and its derived status.
func NewRun(r *agency.Run, s agency.Status) Run {
	a := &r.Attempt
	model := r.Model
	if a.AgentState.Model != "" {
		model = a.AgentState.Model
	}
	return Run{
		ID: r.ID, Handle: r.Handle, Name: r.Name, Type: r.Type,
		Status: s.Label, Summary: s.Summary, Problem: s.Problem, Since: s.Since,
		State: a.State, Attempt: a.Number, ExitCode: a.ExitCode, Signal: a.Signal, ErrorCode: a.ErrorCode, Error: a.Error,
		Repo: r.Repo.Root, Branch: r.Branch, BaseCommit: r.Commit, Worktree: r.Worktree, Standby: r.FromStandby(), RunDir: r.Dir,
		Runner: r.Runner.Name, RunnerKind: r.Runner.Kind, Model: model, Headless: a.Headless, Mode: a.Mode, Tags: r.Tags,
		Decided: s.Decided, Request: s.Request, Conversation: a.ConversationID, Usage: a.AgentState.Usage.Listed(), StallAfterMS: r.StallAfterMS, StuckIntervals: r.StuckIntervals, Preset: r.Preset,
		Sandbox: r.Sandbox.Level, Network: r.Sandbox.Network, Enforces: r.Sandbox.Enforces(), Image: a.Image, Ports: a.Ports, Resources: r.Resources, Limits: a.Limits,
		PRNumber: number(r.PR), PR: r.PR, Diff: r.Changes, Flag: r.Flag, Session: r.Session(),
		CreatedAt: r.CreatedAt, StartedAt: a.StartedAt, EndedAt: a.EndedAt, RemovedAt: r.RemovedAt, Unrecorded: r.Unrecorded,
	}
}

// number returns the number of a pull request; nil without one.
func number(pr *agency.PullRequest) *int {
	if pr == nil {
		return nil
	}
	return &pr.Number
}

// Ref returns the name of the run for users.
func (r *Run) Ref() string {
	if r.Name != "" {
		return r.Name
	}
	return r.Handle
}

// NeedsYou reports whether a run waits for a user: agency ls lists it first, agency next attaches
// to it, and agency alerts names it where no alert does. A removed run waits for nothing.
func (r *Run) NeedsYou() bool { return r.RemovedAt == nil && r.Status.NeedsUser() }

// Rank is where a run stands in OrderByNeed.
type Rank struct {
	urgency        int
	since, created time.Time
}

// RankOf returns the rank of a run with a status.
func RankOf(r *agency.Run, s agency.Status) Rank {
	return rank(s.Label, s.Since, r.CreatedAt, r.RemovedAt)
}

// Rank returns the rank of a run. It needs the fields status, since, created_at and removed_at.
func (r *Run) Rank() Rank { return rank(r.Status, r.Since, r.CreatedAt, r.RemovedAt) }

// rank returns the rank of a run. A removed one needs nothing.
func rank(l agency.Label, since, created time.Time, removed *time.Time) Rank {
	if removed != nil {
		l = ""
	}
	return Rank{l.Urgency(), since, created}
}

// Compare returns a negative number when a run at p comes before one at q, and 0 when they stay in
// the order in which they were made.
func (p Rank) Compare(q Rank) int {
	switch {
	case p.urgency == 0 && q.urgency == 0:
		return q.created.Compare(p.created)
	case p.urgency == 0:
		return 1
	case q.urgency == 0:
		return -1
	default:
		return cmp.Or(p.urgency-q.urgency, p.since.Compare(q.since), p.created.Compare(q.created))
	}
}

// FindRun returns the run that a reference means, even a removed one. A client that asks one daemon
// after another must name the run by its id: a name, or a part of one, can mean another run later.
func FindRun(ctx context.Context, c *Client, ref string) (*Run, error) {
	if ref == "" { // which would list every run
		return nil, agency.Errorf(agency.CodeRunNotFound, "no run is called %q", ref).WithHint("agency ls --all-repos --all")
	}
	resp, err := Call(ctx, c, ListRuns, ListRunsRequest{Run: ref, Removed: true})
	if err != nil {
		return nil, err
	}
	if len(resp.Runs) != 1 {
		return nil, unreadable(fmt.Errorf("%q is %d runs", ref, len(resp.Runs)))
	}
	return &resp.Runs[0], nil
}

// ShowRunResponse is everything about one run.
type ShowRunResponse struct {
	Run      Run              `json:"run"`              // as it is now
	Contract *agency.Contract `json:"runner_status"`    // the content of the agent's status file; null without a readable one
	StatusAt time.Time        `json:"runner_status_at"` // when agency first saw the status file as it is now
	// Requests are all requests that the agent's program waits for, first the one that its terminal
	// shows; never null.
	Requests []agency.Request `json:"requests"`
	Todos    []agency.Todo    `json:"todos"` // the agent's list of its work, as far as its protocol tells it; never null
	// Settings are what the living agent reports that it uses and offers; the lists are never null.
	Settings   agency.Settings        `json:"settings"`
	Queue      []agency.QueuedMessage `json:"queue"`       // messages that the agent has, and has not begun with; never null
	Attempts   []agency.Attempt       `json:"attempts"`    // the oldest first
	Steps      []agency.Step          `json:"steps"`       // of making the newest attempt, in their order
	Inputs     []agency.Input         `json:"inputs"`      // the files that the spec names, as they were at the start
	Git        *agency.GitFacts       `json:"git"`         // the state of its worktree, as git sees it; null when the worktree is gone or cannot be read
	GitProblem string                 `json:"git_problem"` // why git is null, unless the run is removed
	Checks     []agency.CheckResult   `json:"checks"`      // the newest verdict of each check on its work; never null
	Connected  bool                   `json:"connected"`   // the wrapper is connected to the daemon now
	LastOutput *time.Time             `json:"last_output"` // when the agent last printed something; null when never
	PromptPath string                 `json:"prompt_path"` // of the file with the task
	LogPath    string                 `json:"log_path"`    // of the newest attempt's log
	LogLost    int64                  `json:"log_lost"`    // bytes that are missing in the log, because they could not be written to the disk
	OutputPath string                 `json:"output_path"` // of the run's result, output.md; empty while there is none
}
