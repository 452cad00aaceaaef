package api

import "agency"

// AnswerRunRequest answers what a run's agent waits for: a permission by a decision, a question by a text.
type AnswerRunRequest struct {
	Run      string          `json:"run" jsonschema:"its name, handle, id, or a unique prefix of one of these"`
	PromptID string          `json:"prompt_id,omitempty" jsonschema:"what is answered, from run_status or an alert; run.answer without it answers whatever the agent waits for now"`
	Decision agency.Decision `json:"decision,omitempty" jsonschema:"for a permission: allow, this once, or deny. deny refuses a question too"`
	Text     string          `json:"text,omitempty" jsonschema:"for a question: one of its options, or an answer in one line"`
}

// AnswerRunResponse says what came of an answer.
type AnswerRunResponse struct {
	RunID     agency.RunID `json:"run_id"`
	PromptID  string       `json:"prompt_id"`
	Confirmed bool         `json:"confirmed"` // the agent was seen to take it
}

// ShowOutputRequest asks for the end of what a run's agent shows.
type ShowOutputRequest struct {
	Run   string `json:"run" jsonschema:"its name, handle, id, or a unique prefix of one of these"`
	Lines int    `json:"lines,omitempty" jsonschema:"how many of the last lines; 50 unless told, at most 500"`
}

// ShowOutputResponse is untrusted text of the agent's without control characters.
type ShowOutputResponse struct {
	RunID  agency.RunID `json:"run_id"`
	Lines  []string     `json:"lines"`  // of its terminal, or of its log when that is gone
	Result string       `json:"result"` // what the run came to, the first 64 KiB of output.md; empty while it came to nothing
}

// DiffRunRequest asks what a run changed.
type DiffRunRequest struct {
	Run      string `json:"run" jsonschema:"its name, handle, id, or a unique prefix of one of these"`
	MaxBytes int    `json:"max_bytes,omitempty" jsonschema:"where to cut the patch off; 131072 unless told, at most 4194304"`
}

// DiffRunResponse compares the worktree of a run with the commit that it began at: commits, changes and new files that are not
// ignored. Of a run whose worktree is gone it is the branch.
type DiffRunResponse struct {
	RunID      agency.RunID        `json:"run_id"`
	Branch     string              `json:"branch"`
	Worktree   string              `json:"worktree_path"`
	Repo       string              `json:"repo"` // its root
	BaseCommit string              `json:"base_commit"`
	Files      []agency.FileChange `json:"files"`
	Patch      string              `json:"patch"`
	Truncated  bool                `json:"truncated"` // the patch is cut off, or files are left out
	LeftOut    agency.LeftOut      `json:"left_out"`  // files in the worktree that there was too much of to look at
}
