package session

import (
	"slices"
	"time"

	"agency/internal/api"
	"agency/internal/duration"
	"agency/internal/tui/cell"
	"agency/internal/view"
)

// chain is agents of which each comes after the one before.
type chain struct {
	agents []*api.SessionAgent
	left   int           // how many of them have not ended
	took   time.Duration // how long the others took, and those that work so far
}

// longer reports whether a chain holds a session up more than another: more of it is still to come
// or, with as much to come, it took longer.
func (c *chain) longer(than *chain) bool {
	if c.left != than.left {
		return c.left > than.left
	}
	return c.took > than.took
}

// criticalPath returns the chain that holds a session up most; nil when no agent comes after
// another.
func criticalPath(agents []api.SessionAgent, now time.Time) []*api.SessionAgent {
	known, chains := map[string]*api.SessionAgent{}, map[string]*chain{}
	for i := range agents {
		known[agents[i].ID] = &agents[i]
	}
	var to func(a *api.SessionAgent) *chain
	to = func(a *api.SessionAgent) *chain {
		if c := chains[a.ID]; c != nil {
			return c
		}
		chains[a.ID] = &chain{} // a plan has no circle, but this would end in one
		best := &chain{}
		for _, id := range a.After {
			if before := known[id]; before != nil {
				if c := to(before); len(best.agents) == 0 || c.longer(best) {
					best = c
				}
			}
		}
		c := &chain{append(slices.Clip(best.agents), a), best.left, best.took + took(a, now)}
		if !a.Status.Final() {
			c.left++
		}
		chains[a.ID] = c
		return c
	}
	longest := &chain{}
	for i := range agents {
		if c := to(&agents[i]); len(c.agents) > 1 && (len(longest.agents) == 0 || c.longer(longest)) {
			longest = c
		}
	}
	return longest.agents
}

// took returns how long an agent took, or has taken so far.
func took(a *api.SessionAgent, now time.Time) time.Duration {
	switch {
	case a.StartedAt == nil:
		return 0
	case a.CompletedAt != nil:
		return max(a.CompletedAt.Sub(*a.StartedAt), 0)
	default:
		return max(now.Sub(*a.StartedAt), 0)
	}
}

// path returns the row with the critical path; where there is no room for all, without the first of
// those that have ended.
func (p *Page) path(width int) []cell.Line {
	agents := criticalPath(p.shown.Agents, p.desk.Now())
	if len(agents) == 0 {
		return nil
	}
	for from := range agents {
		line := cell.Of(cell.Dim, " critical path  ")
		for i, a := range agents[from:] {
			if from > 0 || i > 0 {
				line = line.Add(cell.Dim, map[bool]string{true: "… → ", false: " → "}[i == 0])
			}
			mark := view.AgentMark(a)
			line = line.Add(cell.Coloured(view.MarkColour(mark)), mark+" ").Add(cell.Plain, a.ID)
			if a.StartedAt != nil {
				line = line.Add(cell.Dim, " "+duration.Short(took(a, p.desk.Now())))
			}
		}
		if line.Width() <= width || !agents[from].Status.Final() || from == len(agents)-1 {
			return []cell.Line{line, cell.Of(cell.Plain, "")}
		}
	}
	return nil
}
