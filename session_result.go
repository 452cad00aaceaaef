package agency

// AgentResult is what an agent of a session came to. It is found out once, when the agent is final, and kept, so that it
// outlives the agent's worktree.
type AgentResult struct {
	Commits int    `json:"commits"` // since it began
	Files   int    `json:"files"`   // that differ from where it began, whether that is committed or not
	Added   int    `json:"added"`   // lines
	Deleted int    `json:"deleted"` // lines
	Dirty   bool   `json:"dirty"`   // something is not committed
	Branch  string `json:"branch"`  // where the commits are
	Tests   string `json:"tests"`   // what the agent says of how to test; untrusted
	Usage   Usage  `json:"usage"`
	// Nested are repositories inside its worktree, relative to it: nothing of them is in what others start from.
	Nested []string `json:"nested"`
	// Problem is why git could not tell the numbers; empty when they are known.
	Problem string `json:"problem"`
}

// DiffStat is how much differs between two commits.
type DiffStat struct {
	Commits int // of the second that are not in the first
	Files   int
	Added   int // lines
	Deleted int // lines
	// Nested are the repositories inside the worktree, relative to it, that have work of their own, which is not counted.
	Nested []string
}
