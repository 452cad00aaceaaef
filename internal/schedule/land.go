package schedule

import (
	"maps"
	"slices"

	"agency"
)

// land returns the next landing of the session; nil when there is none now. waits reports whether
// the session must not settle, because of a landing that is in progress, or due after a pause.
//
// One agent lands after the other, in the order of their waves: each is on top of those before it.
// An agent lands once every agent that starts from its result is final, since a complete one of
// those brings the work along.
func (d *State) land() (next *Action, waits bool) {
	if d.Session.CancelAt != nil || !d.lands {
		return nil, d.landing()
	}
	due, open := -1, make([]openness, len(d.agents))
	for i := range d.agents {
		a, p := &d.agents[i], &d.Plan.Agents[i]
		if p.Land == "" || a.Status != agency.AgentComplete || a.Run == "" || a.Landing.State != "" || d.isStart(i, open) {
			continue
		}
		if due < 0 || p.Wave < d.Plan.Agents[due].Wave {
			due = i
		}
	}
	switch {
	case due < 0:
		return nil, d.landing()
	case d.landing() || d.Session.Paused != "":
		return nil, true
	default:
		return d.action(Action{Kind: ActLand, Agent: due}), true
	}
}

// landing reports whether the work of an agent is being landed: nothing else takes long with a
// final agent.
func (d *State) landing() bool {
	for i := range d.agents {
		if d.busy[i] && d.agents[i].Status == agency.AgentComplete {
			return true
		}
	}
	return false
}

// openness is whether an agent that is not final starts from an agent's result.
type openness int8

const (
	unknown openness = iota
	closed
	opened
)

// isStart reports whether an agent that is not final starts from the result of an agent, directly
// or through others. open holds what is known of all agents.
func (d *State) isStart(i int, open []openness) bool {
	if open[i] == unknown {
		open[i] = closed
		for _, after := range d.dependents[i] {
			if d.Plan.Agents[after].Base == agency.BaseDeps && (!d.agents[after].Status.Final() || d.isStart(after, open)) {
				open[i] = opened
				break
			}
		}
	}
	return open[i] == opened
}

// StartedFrom returns the agents that start from the result of an agent, directly or through
// others, in the order of the plan.
func (d *State) StartedFrom(i int) []int {
	found := map[int]bool{}
	for next := []int{i}; len(next) > 0; {
		from := next[len(next)-1]
		next = next[:len(next)-1]
		for _, after := range d.dependents[from] {
			if d.Plan.Agents[after].Base == agency.BaseDeps && !found[after] {
				found[after] = true
				next = append(next, after)
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}
