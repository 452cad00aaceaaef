package schedule

import (
	"maps"

	"agency"
)

// capacity is the number of further attempts that the limits allow.
type capacity struct {
	slots   int            // of the session
	runners map[string]int // of each runner that has a limit
}

// capacity counts every agent with an attempt or an action in progress. An agent between two
// attempts needs a place only when the next one begins.
func (d *State) capacity() capacity {
	r := capacity{slots: d.Session.MaxParallel, runners: maps.Clone(d.Plan.Limits)}
	for i := range d.agents {
		if status := d.agents[i].Status; d.busy[i] && !status.Final() || status == agency.AgentRunning && (d.facts[i] == nil || d.HasNewAttempt(i)) {
			r.slots--
			if _, limited := r.runners[d.Plan.Agents[i].Runner]; limited {
				r.runners[d.Plan.Agents[i].Runner]--
			}
		}
	}
	return r
}

// take takes a place for one more attempt, or returns false when there is none.
func (r *capacity) take(runner string) bool {
	left, limited := r.runners[runner]
	if r.slots <= 0 || limited && left <= 0 {
		return false
	}
	r.slots--
	if limited {
		r.runners[runner]--
	}
	return true
}
