package api

import (
	"time"

	"agency"
)

// RunRequest names one run: by its name, handle or id, or by a unique prefix of at least four
// characters of one of these.
type RunRequest struct {
	Run string `json:"run" jsonschema:"its name, handle or id"`
}

// CreateRunRequest asks for a new run.
type CreateRunRequest struct {
	Spec   agency.Spec    `json:"spec"`             // what to do, and how
	Dir    string         `json:"dir"`              // the caller's working directory
	Env    agency.Environ `json:"env,omitempty"`    // the caller's environment, for the runner
	Config string         `json:"config,omitempty"` // the caller's configuration file; empty means the default one
	// Files are copied into the worktree, and the task names them, except that of a shell, which would
	// execute it.
	Files []agency.Attachment `json:"files,omitempty"`
}

// CreateRunResponse holds the new run.
type CreateRunResponse struct {
	Run      Run      `json:"run"`      // the new run, whose runner has started
	Warnings []string `json:"warnings"` // what the repository wants in a worktree and this one did not get
}

// RunResponse holds one run after an operation.
type RunResponse struct {
	Run Run `json:"run"` // as it is afterwards
}

// StopRunResponse holds a run that has ended.
type StopRunResponse struct {
	Run     Run  `json:"run"`     // as it is at its end
	Stopped bool `json:"stopped"` // this request ended it; false when it had ended before
}

// ListRunsRequest selects runs.
type ListRunsRequest struct {
	Dir string `json:"dir,omitempty"` // only runs of the repository of this directory; empty means all repositories
	Run string `json:"run,omitempty"` // only this run; empty means all
	// RunIDs are the ids of the only runs that are listed, at most 1,000; one that does not exist is
	// left out. Empty means all. A client that follows the events lists with them what changed.
	RunIDs  []agency.RunID `json:"run_ids,omitempty"`
	Removed bool           `json:"removed,omitempty"` // removed runs too
	Status  []string       `json:"status,omitempty"`  // only runs with these statuses; empty means all
	Tag     string         `json:"tag,omitempty"`     // only runs with this tag; empty means all
	Fields  []string       `json:"fields,omitempty"`  // only these fields of each run; empty means all
	// Order is "need" for the order of agency ls. Runs that need a user come first: those that ask, then
	// blocked, stalled, and those whose turn ended, the longest waiting on top of each. The others
	// follow, newest first. Empty means oldest first.
	Order  string `json:"order,omitempty"`
	Offset int    `json:"offset,omitempty"` // how many of the first runs in this order are left out
	Limit  int    `json:"limit,omitempty"`  // how many follow at most; 0 means all
}

// OrderByNeed is the order of runs in which users look at them.
const OrderByNeed = "need"

// ListRunsResponse holds runs in the order of the request.
type ListRunsResponse struct {
	Runs  []Run `json:"runs"`            // in the order of the request
	Total int   `json:"total,omitempty"` // with an offset or a limit: how many there are without them
}

// SendInputRequest types Text into a run's agent and presses Enter.
type SendInputRequest struct {
	Run      string `json:"run" jsonschema:"its name, handle or id"`
	Text     string `json:"text"` // Enter is pressed after it
	PromptID string `json:"prompt_id,omitempty" jsonschema:"refused unless the run waits for this prompt"`
	// Files are copied into the worktree, and the message names them.
	Files []agency.Attachment `json:"files,omitempty"`
}

// SendInputResponse is the result of typing a message.
type SendInputResponse struct {
	RunID     agency.RunID `json:"run_id"`    // the id of the run
	Delivered bool         `json:"delivered"` // the text was typed
	Confirmed bool         `json:"confirmed"` // agency saw the agent accept it
	// Effect is what agency saw of the text. When confirmed: prompt (the agent reported a prompt),
	// turn (the text left its input box, and the agent works), read (the program, which reads lines,
	// has read it), ended (the program ended) or taken (the agent acknowledged it, in its own
	// protocol). Else: composer (the text is in its input box), output (the program printed
	// something), written (the agent has not acknowledged it yet) or none.
	Effect   string `json:"effect"`
	Composer string `json:"composer"` // with composer: the text in the agent's input box
}

// PressKeysRequest types a text, and then keys, into the terminal of a run. It is refused while the
// terminal shows a dialog, and for another attempt than the client saw.
type PressKeysRequest struct {
	Run      string   `json:"run" jsonschema:"its name, handle or id"`
	Attempt  int      `json:"attempt"`             // the attempt that the client saw; it is refused when there is a newer one
	PromptID string   `json:"prompt_id,omitempty"` // of the request that is open; while one is, other keys are refused
	Text     string   `json:"text,omitempty"`      // without control characters
	Keys     []string `json:"keys,omitempty"`      // enter, tab, backtab, escape, space, backspace, delete, arrows (up), home, end, page-up, page-down, ctrl-a to ctrl-z
}

// PressKeysResponse names the run that got the keys.
type PressKeysResponse struct {
	RunID   agency.RunID `json:"run_id"`  // the id of the run
	Attempt int          `json:"attempt"` // the attempt that got them
}

// ResumeRunRequest starts another attempt of a run.
type ResumeRunRequest struct {
	Run     string         `json:"run" jsonschema:"its name, handle or id"`
	Prompt  string         `json:"prompt,omitempty" jsonschema:"a new task; default: the old one"`
	Fresh   bool           `json:"fresh,omitempty" jsonschema:"begin a new conversation; the worktree is saved first"`
	Mode    agency.Mode    `json:"mode,omitempty"`    // continue the conversation in this mode; without a prompt, the agent waits for a message
	Idle    bool           `json:"idle,omitempty"`    // with mode: refuse while the agent works, asks, or has tasks in the background
	Attempt int            `json:"attempt,omitempty"` // continue the conversation of this attempt; 0 means the newest
	Restart bool           `json:"restart,omitempty" jsonschema:"stop it first if it still runs, as a stuck worker does"`
	Force   bool           `json:"force,omitempty"`    // even if the runner's configuration changed
	NoSetup bool           `json:"no_setup,omitempty"` // even if the repository's setup never succeeded
	Set     []string       `json:"set,omitempty"`      // NAME=value for the runner, over the caller's environment; variables of earlier attempts are not kept
	Env     agency.Environ `json:"env,omitempty"`      // the caller's environment, for the runner
	Config  string         `json:"config,omitempty"`   // the caller's configuration file; empty means the default one
}

// ResumeRunResponse holds the run with its new attempt.
type ResumeRunResponse struct {
	Run       Run           `json:"run"`       // with its new attempt
	Continued bool          `json:"continued"` // the agent continues the conversation of the attempt before
	Note      string        `json:"note"`      // why it does not continue; empty when it does
	Snapshot  *agency.Saved `json:"snapshot"`  // with fresh: the work that was saved first; null when there was nothing to save
	Warnings  []string      `json:"warnings"`  // what the repository wants in a worktree and this one did not get
}

// RemoveRunRequest removes a run.
type RemoveRunRequest struct {
	Run          string `json:"run" jsonschema:"its name, handle or id"`
	Stop         bool   `json:"stop,omitempty"`    // stop it first if it is live
	Discard      bool   `json:"discard,omitempty"` // save nothing first: what is in no commit is lost
	DeleteBranch bool   `json:"delete_branch,omitempty" jsonschema:"also delete its branch; refused when that would lose commits"`
}

// RemoveRunResponse describes what was removed and what was kept.
type RemoveRunResponse struct {
	ID        agency.RunID  `json:"id"`         // the id of the run
	State     agency.State  `json:"state"`      // of its newest attempt
	Removed   bool          `json:"removed"`    // always true: what cannot be removed is an error
	Already   bool          `json:"already"`    // it was removed before
	RemovedAt time.Time     `json:"removed_at"` // when it was removed
	Snapshot  *agency.Saved `json:"snapshot"`   // the work that was saved first; null when there was nothing to save
	Branch    string        `json:"branch"`     // the branch that stays; empty when it was deleted
	Warnings  []string      `json:"warnings"`   // what was gone already, or stays
}

// FlagRunRequest flags a run. It replaces a flag with another reason.
type FlagRunRequest struct {
	Run    string `json:"run" jsonschema:"its name, handle or id; your own name for yourself"`
	Reason string `json:"reason" jsonschema:"what to look at, in one short sentence"`
}

// FlagRunResponse holds a run after its flag was set or removed.
type FlagRunResponse struct {
	Run Run          `json:"run"` // as it is afterwards
	Was *agency.Flag `json:"was"` // the flag before; null when there was none
}

// WaitRunsRequest waits until every run has one of some statuses, or is settled.
type WaitRunsRequest struct {
	Runs      []string `json:"runs"`                 // names, handles or ids
	For       []string `json:"for,omitempty"`        // the statuses to wait for, any of them; empty means until each run is settled
	TimeoutMS int64    `json:"timeout_ms,omitempty"` // how long, in milliseconds; 0 means no limit
}

func (r WaitRunsRequest) time() time.Duration { return time.Duration(r.TimeoutMS) * time.Millisecond }

func (r WaitRunsRequest) after(passed time.Duration) any {
	r.TimeoutMS = left(r.TimeoutMS, passed)
	return r
}

// WaitRunsResponse holds the runs as they were when the wait ended.
type WaitRunsResponse struct {
	Runs     []Run `json:"runs"`      // as they were when the wait ended, in the order of the request, without agents of sessions that have not begun
	TimedOut bool  `json:"timed_out"` // the time was up before all runs were there
}

// JoinRunResponse is where the agent's own terminal joins a run. The client builds the command, so that
// nothing from a daemon is run as a command.
type JoinRunResponse struct {
	RunID        agency.RunID      `json:"run_id"`          // the run
	Runner       agency.RunnerKind `json:"runner"`          // the agent
	Dir          string            `json:"dir"`             // where to start the terminal: the worktree, or / for a run in a sandbox
	Conversation string            `json:"conversation_id"` // which the terminal joins
	Socket       string            `json:"socket"`          // at which it joins, once, within a minute; absolute
}

// AttachRunResponse is where a run's terminal is. The client builds the command that shows it,
// so that nothing from a daemon is run as a command.
type AttachRunResponse struct {
	RunID  agency.RunID `json:"run_id"`      // its tmux session is named agency_ and this id
	Socket string       `json:"tmux_socket"` // of the tmux server that has the session, absolute
}
