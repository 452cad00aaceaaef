package agency

import (
	"fmt"
	"strings"
	"time"
)

// AgentWait is what an agent without an attempt waits for, though nobody has to act for it.
type AgentWait struct {
	Reason string    // empty is nothing, or what its record says
	Until  time.Time // zero is not known
}

// Waits are what the agents wait for, by position, as Schedule sees it. held is until when a runner takes no work.
func (d *SessionState) Waits(c Clock, held map[string]time.Time) []AgentWait {
	waits := make([]AgentWait, len(d.agents))
	if d.Session.Status.Final() || d.Session.CancelAt != nil {
		return waits
	}
	room := d.room()
	for i := range d.agents {
		if f := d.facts[i]; d.agents[i].Status == AgentRunning && f != nil && f.Made && !d.HasNewAttempt(i) {
			waits[i] = d.wait(i, &room, c, held)
		}
	}
	for i := range d.agents {
		if d.agents[i].Status == AgentQueued && d.agents[i].Error == "" {
			waits[i] = d.wait(i, &room, c, held)
		}
	}
	return waits
}

// wait is what one agent waits for. It takes the place that the agent gets.
func (d *SessionState) wait(i int, room *room, c Clock, held map[string]time.Time) AgentWait {
	a, runner := &d.agents[i], d.Plan.Agents[i].Runner
	until, later := held[runner], a.NotBefore != nil && c.Ahead(*a.NotBefore)
	switch {
	case a.Status == AgentQueued && d.missing[i] > 0:
		return AgentWait{Reason: "after " + d.missed(i)}
	case later && until.Sub(*a.NotBefore) < time.Second: // as good as the same
		return AgentWait{Until: *a.NotBefore}
	case until.After(c.Now):
		return AgentWait{Reason: runner + " is " + limitedWords(until, c), Until: until}
	case d.Session.Paused != "":
		return AgentWait{Reason: "paused"}
	case room.slots <= 0:
		return AgentWait{Reason: fmt.Sprintf("no free place, at most %d at once", d.Session.MaxParallel)}
	case !room.take(runner):
		return AgentWait{Reason: fmt.Sprintf("no free place, at most %d of %s at once", d.Plan.Limits[runner], runner)}
	default:
		return AgentWait{}
	}
}

// missed names those that an agent comes after and that are not complete.
func (d *SessionState) missed(i int) string {
	const most = 8
	names := make([]string, 0, most)
	for _, id := range d.Plan.Agents[i].After {
		if len(names) < most && d.agents[d.position[id]].Status != AgentComplete {
			names = append(names, id)
		}
	}
	text := strings.Join(names, ", ")
	if more := d.missing[i] - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
