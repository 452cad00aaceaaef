package status

import (
	"cmp"
	"slices"

	"agency"
)

// UsageOf returns the total usage of a run's attempts, given the oldest first. Of attempts that
// count a whole conversation only the newest known number counts, since it contains the older ones.
func UsageOf(attempts []agency.Attempt) agency.Usage {
	var total agency.Usage
	counted := map[string]agency.Usage{} // by conversation: its total counted so far
	for i := range slices.Backward(attempts) {
		s := &attempts[i].AgentState
		newer := counted[cmp.Or(s.UsageOf, s.Conversation)]
		rest := beyond(s.Usage, &newer)
		total.Add(&rest)
		if s.UsageOf != "" {
			newer.Add(&rest)
			counted[s.UsageOf] = newer
		}
	}
	return total
}

// beyond returns the part of a usage that another does not contain.
func beyond(u agency.Usage, known *agency.Usage) agency.Usage {
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

// mostCounted is how many answers an agent's state remembers: the parts of one come close together.
const mostCounted = 16

// grown returns the usage of an answer beyond what was already counted for it. The parts of an
// answer repeat its growing usage, and the maximum of each kind is the total.
func (s observer) grown(id string, m agency.ModelUsage) agency.ModelUsage {
	before, counted := agency.ModelUsage{}, slices.Clone(s.Counted)
	if i := slices.IndexFunc(counted, func(c agency.Counted) bool { return c.ID == id }); i >= 0 {
		before = counted[i].Usage
		counted = slices.Delete(counted, i, i+1)
	}
	most := m.Combine(before, func(a, b int64) int64 { return max(a, b) })
	s.Counted = append(counted[max(0, len(counted)-mostCounted+1):], agency.Counted{ID: id, Usage: most})
	return most.Combine(before, func(a, b int64) int64 { return a - b })
}

func (s observer) use(e agency.Evidence) {
	if e.Usage == nil {
		return
	}
	used := *e.Usage
	if e.Add && e.ID != "" && len(used.Models) == 1 {
		used = *agency.NewUsage(s.grown(e.ID, used.Models[0]))
		used.Estimated = e.Usage.Estimated
	}
	if s.UsageOf = ""; e.Whole {
		s.UsageOf = s.Conversation
	}
	if e.Add {
		s.Usage.Add(&used)
		return
	}
	s.Usage = agency.Usage{
		InputTokens: cmp.Or(used.InputTokens, s.Usage.InputTokens), CachedTokens: cmp.Or(used.CachedTokens, s.Usage.CachedTokens),
		OutputTokens: cmp.Or(used.OutputTokens, s.Usage.OutputTokens), CostUSD: cmp.Or(used.CostUSD, s.Usage.CostUSD),
		Models: used.Models, Estimated: used.Estimated,
	}
}
