package agency

import (
	"cmp"
	"slices"
)

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

// UsageOf is what the attempts of a run used together, the oldest first. Of those that count a whole conversation only the newest
// known number counts, since it contains the older ones.
func UsageOf(attempts []Attempt) Usage {
	var total Usage
	counted := map[string]Usage{} // by conversation, what is counted of all of it
	for i := range slices.Backward(attempts) {
		s := &attempts[i].Situation
		newer := counted[cmp.Or(s.UsageOf, s.Conversation)]
		rest := s.Usage.beyond(&newer)
		total.Add(&rest)
		if s.UsageOf != "" {
			newer.Add(&rest)
			counted[s.UsageOf] = newer
		}
	}
	return total
}

// beyond is what is known here and not there.
func (u Usage) beyond(known *Usage) Usage {
	if known.InputTokens != nil {
		u.InputTokens, u.Models = nil, nil
	}
	if known.CachedTokens != nil {
		u.CachedTokens = nil
	}
	if known.OutputTokens != nil {
		u.OutputTokens = nil
	}
	if known.CostUSD != nil {
		u.CostUSD = nil
	}
	return u
}

// Add adds what was used elsewhere; what neither tells stays unknown.
func (u *Usage) Add(other *Usage) {
	u.InputTokens = sum(u.InputTokens, other.InputTokens)
	u.CachedTokens = sum(u.CachedTokens, other.CachedTokens)
	u.OutputTokens = sum(u.OutputTokens, other.OutputTokens)
	u.CostUSD = sum(u.CostUSD, other.CostUSD)
	u.Models = addModels(u.Models, other.Models)
	u.Estimated = u.Estimated || other.Estimated
}

func sum[N int64 | float64](a, b *N) *N {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	default:
		return new(*a + *b)
	}
}
