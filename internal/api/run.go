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
	ID         agency.RunID      `json:"id"`
	Handle     string            `json:"handle"`
	Name       string            `json:"name"`
	Type       string            `json:"type"`
	Status     agency.Label      `json:"status"`
	Summary    string            `json:"summary"`
	Problem    string            `json:"problem"`
	Since      time.Time         `json:"since"`
	State      agency.State      `json:"state"`
	Attempt    int               `json:"attempt"`
	ExitCode   *int              `json:"exit_code"`
	Signal     string            `json:"signal"`
	ErrorCode  agency.Code       `json:"error_code"` // empty unless its newest attempt failed
	Error      string            `json:"error"`
	Repo       string            `json:"repo"`
	Branch     string            `json:"branch"`
	BaseCommit string            `json:"base_commit"`
	Worktree   string            `json:"worktree_path"`
	Standby    bool              `json:"standby"` // the worktree was made ahead of the run
	RunDir     string            `json:"run_dir"`
	Runner     string            `json:"runner"`
	RunnerKind agency.RunnerKind `json:"runner_kind"`
	Model      string            `json:"model"`
	Headless   bool              `json:"headless"` // its mode is headless
	Mode       agency.Mode       `json:"mode"`     // how agency speaks with its agent
	Tags       []string          `json:"tags"`
	// Decided is the basis of the status: record, process, contract, message, clock, or a source of
	// evidence.
	Decided      agency.DecidedBy `json:"decided_by"`
	Request      *agency.Request  `json:"request"`         // what the agent's program waits for; null when it waits for nothing
	Conversation string           `json:"conversation_id"` // the agent's own id of its conversation; empty when unknown
	Usage        agency.Usage     `json:"usage"`           // of the conversation, as the agent reports it; null means unknown
	StallAfterMS int64            `json:"stall_after_ms"`  // 0 means as configured
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
	// Resources are how much of the machine each attempt may use; the attempts say what enforces
	// them.
	Resources agency.Resources `json:"resources"`
	// Limits are what enforces the resources of the newest attempt, and which it reached; null without
	// limits.
	Limits   *agency.LimitUse `json:"limits"`
	PRNumber *int             `json:"pr_number"`
	// PR is its pull request, as it was when agency last looked; null when it knows none.
	PR *agency.PullRequest `json:"pr"`
	// Diff is what the run changed since its base, as counted when its agent last rested or ended;
	// null before that.
	Diff      *agency.ChangeSize `json:"diff"`
	Flag      *agency.Flag       `json:"flag"` // why the user or an agent must look at the run; null when it has no flag
	Session   string             `json:"tmux_session"`
	CreatedAt time.Time          `json:"created_at"`
	StartedAt *time.Time         `json:"started_at"`
	EndedAt   *time.Time         `json:"ended_at"`
	RemovedAt *time.Time         `json:"removed_at"`
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
		Sandbox: r.Sandbox.Level, Network: r.Sandbox.Network, Enforces: r.Sandbox.Enforces(), Image: a.Image, Resources: r.Resources, Limits: a.Limits,
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
	needs          bool
	since, created time.Time
}

// RankOf returns the rank of a run with a status.
func RankOf(r *agency.Run, s agency.Status) Rank {
	return Rank{r.RemovedAt == nil && s.Label.NeedsUser(), s.Since, r.CreatedAt}
}

// Compare returns a negative number when a run at p comes before one at q, and 0 when they stay in
// the order in which they were made.
func (p Rank) Compare(q Rank) int {
	switch {
	case p.needs != q.needs:
		if p.needs {
			return -1
		}
		return 1
	case p.needs:
		return cmp.Or(p.since.Compare(q.since), p.created.Compare(q.created))
	default:
		return q.created.Compare(p.created)
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
	Run      Run              `json:"run"`
	Contract *agency.Contract `json:"runner_status"` // the content of the agent's status file; null without a readable one
	StatusAt time.Time        `json:"runner_status_at"`
	// Requests are all requests that the agent's program waits for, first the one that its terminal
	// shows; never null.
	Requests   []agency.Request     `json:"requests"`
	Attempts   []agency.Attempt     `json:"attempts"`
	Steps      []agency.Step        `json:"steps"`
	Inputs     []agency.Input       `json:"inputs"`
	Git        *agency.GitFacts     `json:"git"`         // null when the worktree is gone or cannot be read
	GitProblem string               `json:"git_problem"` // why git is null, unless the run is removed
	Checks     []agency.CheckResult `json:"checks"`      // the newest verdict of each check on its work; never null
	Connected  bool                 `json:"connected"`   // the wrapper is connected to the daemon now
	LastOutput *time.Time           `json:"last_output"`
	PromptPath string               `json:"prompt_path"`
	LogPath    string               `json:"log_path"`
	LogLost    int64                `json:"log_lost"`    // bytes that are missing in the log, because they could not be written to the disk
	OutputPath string               `json:"output_path"` // the run's result; empty while there is none
}
