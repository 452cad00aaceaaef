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

// capacity counts every agent that has a place.
func (d *State) capacity(c Clock) capacity {
	r := capacity{slots: d.Session.MaxParallel, runners: maps.Clone(d.Plan.Limits)}
	for i := range d.agents {
		if d.hasPlace(i, c) {
			r.slots--
			if _, limited := r.runners[d.Plan.Agents[i].Runner]; limited {
				r.runners[d.Plan.Agents[i].Runner]--
			}
		}
	}
	return r
}

// hasPlace reports whether an agent has an attempt or an action in progress. An agent between two
// attempts needs a place only when the next one begins, and one at its rate limit when that is over.
func (d *State) hasPlace(i int, c Clock) bool {
	switch status, f := d.agents[i].Status, d.facts[i]; {
	case d.busy[i]:
		return !status.Final()
	case status != agency.AgentRunning:
		return false
	case f == nil:
		return true
	default:
		return d.HasNewAttempt(i) && (!f.AtLimit() || !c.Ahead(d.limitedUntil(i)))
	}
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
