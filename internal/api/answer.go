package api

import "agency"

// AnswerRunRequest answers the request that a run's agent waits for: a permission with a decision,
// a question with a text.
type AnswerRunRequest struct {
	Run      string          `json:"run" jsonschema:"its name, handle or id"`
	PromptID string          `json:"prompt_id,omitempty" jsonschema:"what is answered, from run_status or an alert"`
	Decision agency.Decision `json:"decision,omitempty" jsonschema:"for a permission, this once; deny refuses a question too"`
	Text     string          `json:"text,omitempty" jsonschema:"for a question: an option, or an answer in one line; with deny, the reason"`
}

// AnswerRunResponse is the outcome of an answer.
type AnswerRunResponse struct {
	RunID     agency.RunID `json:"run_id"`    // the id of the run
	PromptID  string       `json:"prompt_id"` // what was answered
	Confirmed bool         `json:"confirmed"` // agency saw the agent accept it
}

// InterruptRunResponse is the outcome of an interruption.
type InterruptRunResponse struct {
	RunID     agency.RunID `json:"run_id"`    // the id of the run
	Confirmed bool         `json:"confirmed"` // the agent acknowledged it
	Queued    int          `json:"queued"`    // messages that it begins with at once
}

// AllowHostRequest answers the refusal of a host: the run's agent reaches it from now on.
type AllowHostRequest struct {
	Run   string            `json:"run"`   // its name, handle or id
	Host  string            `json:"host"`  // as in a list of hosts; refusals have it as entry
	Scope agency.GrantScope `json:"scope"` // how long the run may reach it
}

// AllowHostResponse is the outcome of the answer to the refusal of a host.
type AllowHostResponse struct {
	RunID   agency.RunID `json:"run_id"`  // the id of the run
	Reached bool         `json:"reached"` // the live agent has it; else it has it when it is back, or begins
}

// ShowOutputRequest asks for the last lines of a run's agent.
type ShowOutputRequest struct {
	Run   string `json:"run" jsonschema:"its name, handle or id"`
	Lines int    `json:"lines,omitempty" jsonschema:"default 50, at most 500"`
}

// ShowOutputResponse is untrusted text of the agent, without control characters.
type ShowOutputResponse struct {
	RunID  agency.RunID `json:"run_id"` // the id of the run
	Lines  []string     `json:"lines"`  // from the agent's terminal, or from its log when that is gone
	Result string       `json:"result"` // the run's result, the first 64 KiB of output.md; empty while there is none
}

// DiffRunRequest asks for the changes of a run: for all of them, for the list of the files, or for
// one of these.
type DiffRunRequest struct {
	Run      string `json:"run" jsonschema:"its name, handle or id"`
	MaxBytes int    `json:"max_bytes,omitempty" jsonschema:"default 131072, at most 4194304"`
	List     bool   `json:"list,omitempty"` // return only the list of files, without a patch
	File     string `json:"file,omitempty"` // list holds this file, and patch its changes alone; a path of the list
	Base     string `json:"base,omitempty" jsonschema:"what it is compared with: base (where it began, default), target (where it left the branch that it would land in) or last-turn (when the agent last rested before its newest turn)"`
	// IgnoreSpace leaves lines out of the patch that differ in white space only.
	IgnoreSpace bool `json:"ignore_space,omitempty"`
	Context     int  `json:"context,omitempty" jsonschema:"lines of the patch around each change, default 3, at most 10000"`
}

// What the work of a run is compared with.
const (
	DiffFromBase     = "base"
	DiffFromTarget   = "target"
	DiffFromLastTurn = "last-turn"
)

// DiffRunResponse compares the worktree of a run with the commit that the run began at: commits,
// changes and new files that are not ignored. When the worktree is gone, it compares the branch.
type DiffRunResponse struct {
	RunID      agency.RunID        `json:"run_id"`        // the id of the run
	Branch     string              `json:"branch"`        // the run's branch
	Worktree   string              `json:"worktree_path"` // the run's worktree; it may be gone
	Repo       string              `json:"repo"`          // root of the repository
	BaseCommit string              `json:"base_commit"`   // the commit, or with last-turn the tree, that the work is compared with
	Revision   string              `json:"revision"`      // of the work: another one has other content
	List       []agency.FileDiff   `json:"list"`          // with list or file; a file that moved is one
	Files      []agency.FileChange `json:"files"`         // the files that differ, at most 2000
	Patch      string              `json:"patch"`         // as git writes it, safe for a terminal; empty with list
	Truncated  bool                `json:"truncated"`     // the patch is cut off or, without file, files are left out
	LeftOut    agency.LeftOut      `json:"left_out"`      // files that were not compared, because they are too many or too large
}
