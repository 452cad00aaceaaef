package schedule

import (
	"fmt"
	"strings"
	"time"

	"agency"
)

// WaitReason is what an agent without an attempt waits for when no user has to act.
type WaitReason struct {
	Reason string    // empty is nothing, or the reason in its record
	Until  time.Time // zero is unknown
}

// Waits returns what the agents wait for, by position, by the rules of Decide. limited is until
// when each runner accepts no work.
func (d *State) Waits(c Clock, limited map[string]time.Time) []WaitReason {
	waits := make([]WaitReason, len(d.agents))
	if d.Session.Status.Final() || d.Session.CancelAt != nil {
		return waits
	}
	capacity := d.capacity(c)
	for i := range d.agents {
		if f := d.facts[i]; d.agents[i].Status == agency.AgentRunning && f != nil && f.Made && !d.HasNewAttempt(i) {
			waits[i] = d.wait(i, &capacity, c, limited)
		}
	}
	for i := range d.agents {
		if d.agents[i].Status == agency.AgentQueued && d.agents[i].Error == "" {
			waits[i] = d.wait(i, &capacity, c, limited)
		}
	}
	return waits
}

// wait returns what one agent waits for. It takes the place that the agent gets.
func (d *State) wait(i int, capacity *capacity, c Clock, limited map[string]time.Time) WaitReason {
	a, runner := &d.agents[i], d.Plan.Agents[i].Runner
	until, later := limited[runner], a.NotBefore != nil && c.Ahead(*a.NotBefore)
	switch {
	case a.Status == agency.AgentQueued && d.missing[i] > 0:
		return WaitReason{Reason: "after " + d.missed(i)}
	case later && until.Sub(*a.NotBefore) < time.Second: // as good as the same
		return WaitReason{Until: *a.NotBefore}
	case until.After(c.Now):
		return WaitReason{Reason: runner + " is " + limitedWords(until, c), Until: until}
	case d.Session.Paused != "":
		return WaitReason{Reason: "paused"}
	case capacity.slots <= 0:
		return WaitReason{Reason: fmt.Sprintf("no free place, at most %d at once", d.Session.MaxParallel)}
	case !capacity.take(runner):
		return WaitReason{Reason: fmt.Sprintf("no free place, at most %d of %s at once", d.Plan.Limits[runner], runner)}
	default:
		return WaitReason{}
	}
}

// missed names an agent's dependencies that are not complete.
func (d *State) missed(i int) string {
	const most = 8
	names := make([]string, 0, most)
	for _, id := range d.Plan.Agents[i].After {
		if len(names) < most && d.agents[d.position[id]].Status != agency.AgentComplete {
			names = append(names, id)
		}
	}
	text := strings.Join(names, ", ")
	if more := d.missing[i] - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
