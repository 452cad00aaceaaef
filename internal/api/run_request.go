package api

import (
	"time"

	"agency"
)

// RunRequest names one run: by name, handle, id, or a unique prefix of four or more characters of one of these.
type RunRequest struct {
	Run string `json:"run" jsonschema:"its name, handle, id, or a unique prefix of one of these"`
}

// CreateRunRequest asks for a run.
type CreateRunRequest struct {
	Spec   agency.Spec    `json:"spec"`
	Dir    string         `json:"dir"`              // the caller's working directory
	Env    agency.Environ `json:"env,omitempty"`    // the caller's environment, for the runner
	Config string         `json:"config,omitempty"` // the caller's configuration file; empty for the default one
}

// CreateRunResponse is the new run. Warnings say what its worktree did not get that the repository wants it to have.
type CreateRunResponse struct {
	Run      Run      `json:"run"`
	Warnings []string `json:"warnings"`
}

// RunResponse is one run after an operation.
type RunResponse struct {
	Run Run `json:"run"`
}

// ListRunsRequest chooses runs.
type ListRunsRequest struct {
	Dir     string   `json:"dir,omitempty"` // only runs of the repository of this directory; empty is every repository
	Run     string   `json:"run,omitempty"` // only this one; empty is all
	Removed bool     `json:"removed,omitempty"`
	Status  []string `json:"status,omitempty"` // only these; empty is all
	Tag     string   `json:"tag,omitempty"`
}

// ListRunsResponse holds runs, newest last.
type ListRunsResponse struct {
	Runs []Run `json:"runs"`
}

// SendInputRequest types Text into a run's agent and presses Enter.
type SendInputRequest struct {
	Run      string `json:"run" jsonschema:"its name, handle, id, or a unique prefix of one of these"`
	Text     string `json:"text" jsonschema:"the message; Enter is pressed behind it"`
	PromptID string `json:"prompt_id,omitempty" jsonschema:"the prompt that this answers, from run_status: the message is refused if the run waits for something else by now"`
}

// SendInputResponse says how far the text got.
type SendInputResponse struct {
	RunID     agency.RunID `json:"run_id"`
	Delivered bool         `json:"delivered"` // it was typed
	Confirmed bool         `json:"confirmed"` // the agent was seen to take it
	Effect    string       `json:"effect"`    // prompt, turn, read or ended if it was; else composer, output or none
	Composer  string       `json:"composer"`  // with composer: what stands in the agent's input box
}

// ResumeRunRequest starts another attempt of a run.
type ResumeRunRequest struct {
	Run     string         `json:"run" jsonschema:"its name, handle, id, or a unique prefix of one of these"`
	Prompt  string         `json:"prompt,omitempty" jsonschema:"a new task; the old one stands unless told"`
	Fresh   bool           `json:"fresh,omitempty" jsonschema:"begin a new conversation instead of going on with the old one; what is in the worktree is saved first"`
	Restart bool           `json:"restart,omitempty" jsonschema:"stop it first if it still runs: the way to restart a stuck worker"`
	Force   bool           `json:"force,omitempty"`    // although the runner's configuration changed
	NoSetup bool           `json:"no_setup,omitempty"` // although the repository's setup never succeeded
	Set     []string       `json:"set,omitempty"`      // NAME=value for the runner, over the caller's environment; what the first start was given is not kept
	Env     agency.Environ `json:"env,omitempty"`      // the caller's environment, for the runner
	Config  string         `json:"config,omitempty"`   // the caller's configuration file; empty for the default one
}

// ResumeRunResponse is the run with its new attempt. Continued says that the agent goes on with the conversation of the
// attempt before; Note says why not.
type ResumeRunResponse struct {
	Run       Run           `json:"run"`
	Continued bool          `json:"continued"`
	Note      string        `json:"note"`
	Snapshot  *agency.Saved `json:"snapshot"`
	Warnings  []string      `json:"warnings"` // what the worktree did not get that the repository wants it to have
}

// RemoveRunRequest removes a run.
type RemoveRunRequest struct {
	Run          string `json:"run"`
	Force        bool   `json:"force,omitempty"` // also when work is lost that cannot be saved
	DeleteBranch bool   `json:"delete_branch,omitempty"`
}

// RemoveRunResponse says what is gone and what was kept.
type RemoveRunResponse struct {
	ID        agency.RunID  `json:"id"`
	State     agency.State  `json:"state"`
	Removed   bool          `json:"removed"`
	RemovedAt time.Time     `json:"removed_at"`
	Snapshot  *agency.Saved `json:"snapshot"`
	Branch    string        `json:"branch"` // empty when it was deleted
	Warnings  []string      `json:"warnings"`
}

// FlagRunRequest flags a run. It takes the place of a flag with another reason.
type FlagRunRequest struct {
	Run    string `json:"run" jsonschema:"its name, handle, id, or a unique prefix of one of these; your own name for yourself"`
	Reason string `json:"reason" jsonschema:"what to look at, in one short sentence"`
}

// FlagRunResponse is a run after its flag was set or taken away.
type FlagRunResponse struct {
	Run Run          `json:"run"`
	Was *agency.Flag `json:"was"` // the flag that it had before; null when it had none
}

// WaitRunsRequest waits until every run has one of the statuses in For, or is settled when For is empty.
type WaitRunsRequest struct {
	Runs      []string `json:"runs"`
	For       []string `json:"for,omitempty"`
	TimeoutMS int64    `json:"timeout_ms,omitempty"` // 0 is no limit
}

func (r WaitRunsRequest) time() time.Duration { return time.Duration(r.TimeoutMS) * time.Millisecond }

func (r WaitRunsRequest) after(passed time.Duration) any {
	r.TimeoutMS = left(r.TimeoutMS, passed)
	return r
}

// WaitRunsResponse holds the runs as they were when the wait ended.
type WaitRunsResponse struct {
	Runs     []Run `json:"runs"`
	TimedOut bool  `json:"timed_out"`
}

// AttachRunResponse says where a run's terminal is. The client makes the command that shows it, so that nothing that a daemon
// answers is run as a command.
type AttachRunResponse struct {
	RunID  agency.RunID `json:"run_id"`      // its session is called agency_ and this
	Socket string       `json:"tmux_socket"` // of the tmux server that holds the session, absolute
}
