package api

import "agency"

// AnswerRunRequest answers what a run's agent waits for: a permission by a decision, a question by a text.
type AnswerRunRequest struct {
	Run      string          `json:"run"`
	PromptID string          `json:"prompt_id"` // of what is answered; empty is whatever the agent waits for now
	Decision agency.Decision `json:"decision"`  // allow or deny; empty when Text answers
	Text     string          `json:"text"`      // an option of the question, or words; one line
}

// AnswerRunResponse says what came of an answer.
type AnswerRunResponse struct {
	RunID     agency.RunID `json:"run_id"`
	PromptID  string       `json:"prompt_id"`
	Confirmed bool         `json:"confirmed"` // the agent was seen to take it
}

// ShowOutputRequest asks for the end of what a run's agent shows.
type ShowOutputRequest struct {
	Run   string `json:"run"`
	Lines int    `json:"lines"` // 0 is 50, and 500 is the most
}

// ShowOutputResponse is untrusted text of the agent's without control characters.
type ShowOutputResponse struct {
	RunID  agency.RunID `json:"run_id"`
	Lines  []string     `json:"lines"`  // of its terminal, or of its log when that is gone
	Result string       `json:"result"` // what the run came to, the first 64 KiB of output.md; empty while it came to nothing
}

// DiffRunRequest asks what a run changed.
type DiffRunRequest struct {
	Run      string `json:"run"`
	MaxBytes int    `json:"max_bytes"` // of the patch; 0 is 128 KiB, and 4 MiB is the most
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
