package session

import (
	"slices"
	"strings"
	"time"

	"agency/internal/api"
	"agency/internal/cli/term"
	"agency/internal/duration"
	"agency/internal/tui/cell"
	"agency/internal/tui/page"
	"agency/internal/view"
)

// chain is a list of agents, each of which comes after the one before.
type chain struct {
	agents []*api.SessionAgent
	left   int           // how many of them have not ended
	took   time.Duration // how long all of them took so far
}

// longer reports whether the chain delays a session more than another: more of its agents have not ended or,
// with as many, it took longer.
func (c *chain) longer(than *chain) bool {
	if c.left != than.left {
		return c.left > than.left
	}
	return c.took > than.took
}

// criticalPath returns the chain that delays a session most; nil when no agent comes after another.
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
		chains[a.ID] = &chain{} // ends the recursion if a plan had a cycle
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

// pathIndent is where the agents of the critical path begin, and pathName the widest name in it.
const (
	pathIndent = 16
	pathName   = 24
)

// path returns the rows of the critical path. If one row has no room for all agents, the first ones that have
// ended are left out.
func (p *Page) path(width int) []cell.Line {
	agents := criticalPath(p.shown.Agents, p.desk.Now())
	for from, a := range agents {
		if rows := p.chain(agents[from:], from > 0, width); len(rows) == 1 || !a.Status.Final() || from == len(agents)-1 {
			return append(rows, cell.Of(cell.Plain, ""))
		}
	}
	return nil
}

// chain returns the rows of a chain. cut is true if agents before it are left out.
func (p *Page) chain(agents []*api.SessionAgent, cut bool, width int) []cell.Line {
	line := cell.Of(cell.Dim, term.Pad(" critical path", pathIndent))
	if cut {
		line = line.Add(cell.Dim, "… → ")
	}
	rows := []cell.Line{}
	for i, a := range agents {
		mark := view.AgentMark(a)
		piece := cell.Of(cell.Coloured(view.MarkColour(mark)), mark+" ").Add(cell.Plain, page.Shorten(label(a), pathName))
		if a.StartedAt != nil {
			piece = piece.Add(cell.Dim, " "+duration.Short(took(a, p.desk.Now())))
		}
		if i < len(agents)-1 {
			piece = piece.Add(cell.Dim, " →")
		}
		if i > 0 && line.Width()+1+piece.Width() > width {
			rows, line = append(rows, line), cell.Of(cell.Plain, strings.Repeat(" ", pathIndent))
		} else if i > 0 {
			line = line.Add(cell.Plain, " ")
		}
		line = append(line, piece...)
	}
	return append(rows, line)
}
