// Package schedule decides what a session starts, stops and retries next. It is pure: the engine
// that executes the decisions is package scheduler.
package schedule

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"agency"
)

// RunFacts is the state of an agent's run, as far as its session needs it.
type RunFacts struct {
	// Made is false when the creation of the run never began or was undone: nothing of it is left.
	Made    bool
	Attempt int // the newest one; the fields below are about it
	State   agency.State
	PID     int  // of the runner while it lives; 0 is none
	Ran     bool // its program was started
	EndedAt time.Time
	// Restarting reports whether the attempt is being stopped so that the next one can begin.
	Restarting bool
	// Asks reports whether it waits for an answer, alive or after a clean end.
	Asks bool
	// ReadyAt is since when the agent reports its work as ready for review; zero when it does not,
	// or ended in another way than by itself or a stop.
	ReadyAt  time.Time
	Turn     agency.Turn
	Headless bool
	ExitCode *int
	Code     agency.Code // why it failed, if agency knows
	Reason   string      // the reason in words
	// LimitedAt is when its model refused work for now; zero is never. ResetAt is until when; zero
	// is unknown.
	LimitedAt time.Time
	ResetAt   time.Time
	SignalAt  time.Time // the newest sign of life, measurements not counted
	// QuietUntil is until when the agent declared to give no sign.
	QuietUntil time.Time
}

// lives reports whether the newest attempt has not ended.
func (f *RunFacts) lives() bool { return f.Made && !f.State.Final() }

// AtLimit reports whether a live attempt rests because its model refused work.
func (f *RunFacts) AtLimit() bool {
	return f.lives() && !f.LimitedAt.IsZero() && f.Turn != agency.TurnWorking
}

// Clock is the time of a decision.
type Clock struct {
	Now time.Time
	// Elapsed returns how much time really passed since then: without forward jumps of the clock
	// and sleep of the machine.
	Elapsed func(since time.Time) time.Duration
}

// LongestHold is the longest time for which an agent is put off.
const LongestHold = 24 * time.Hour

// Ahead reports whether a planned time is still to come.
func (c Clock) Ahead(at time.Time) bool { return at.After(c.Now) && !c.wrong(at) }

// wrong reports whether a time was written by a wrong clock that was corrected since: no plan is
// that far ahead. Such a time counts as past.
func (c Clock) wrong(at time.Time) bool { return at.Sub(c.Now) > LongestHold }

// RetryPolicy holds the delays of retries.
type RetryPolicy struct {
	Backoff []time.Duration // before the second attempt, the third ...; the last one repeats
	Limited []time.Duration // after a rate limit without an end, likewise
	Losses  int             // how many attempts may be lost through no fault of the agent
	// Wait holds the delays between starts that fail through a fault of the machine, or because it
	// is not their turn, likewise. Waits is how many such faults in a row an agent survives.
	Wait  []time.Duration
	Waits int
	// Restart is how long the next attempt of a restarted agent may take to appear.
	Restart time.Duration
	// ReadyQuiet is how long an agent that reports that it is ready may continue when it is unknown
	// whether it works. ReadyGrace is how long it may continue when it does work or is ending by
	// itself.
	ReadyQuiet time.Duration
	ReadyGrace time.Duration
}

// DefaultRetryPolicy returns the policy of sessions.
func DefaultRetryPolicy() RetryPolicy {
	return RetryPolicy{
		Backoff: []time.Duration{10 * time.Second, 30 * time.Second, 90 * time.Second, 270 * time.Second, 10 * time.Minute},
		Limited: []time.Duration{time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute},
		Losses:  3,
		Wait:    []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second, time.Minute}, Waits: 18, // fifteen minutes in total
		Restart: 30 * time.Second, ReadyQuiet: time.Second, ReadyGrace: 30 * time.Second,
	}
}

// State is everything that decides how a session continues. It counts the dependencies that an
// agent still waits for, so that no decision looks at every dependency.
type State struct {
	Session agency.Session
	Plan    *agency.Plan
	Retry   RetryPolicy

	agents           []agency.SessionAgent
	facts            []*RunFacts          // nil is unknown
	limits           []time.Time          // until when each agent's model accepts no work, as last known
	resumed          time.Time            // when the user wanted an immediate try of the agents
	tried            map[string]time.Time // likewise, of all sessions' agents of a runner
	measured         []measured
	busy             []bool // an action for it is in progress
	position         map[string]int
	dependents       [][]int
	missing          []int // how many of its dependencies are not complete
	lands            bool  // the plan lands the work of an agent
	failedDependency []int // its first dependency that ended without success; -1 is none
}

// NewState returns the state of a session from its record. The agents are in the order of the plan.
func NewState(s agency.Session, p *agency.Plan, agents []agency.SessionAgent, retry RetryPolicy) *State {
	n := len(p.Agents)
	d := &State{
		Session: s, Plan: p, Retry: retry, agents: slices.Clone(agents), facts: make([]*RunFacts, n), limits: make([]time.Time, n), tried: map[string]time.Time{},
		measured: make([]measured, n), busy: make([]bool, n),
		position: make(map[string]int, n), dependents: make([][]int, n), missing: make([]int, n), failedDependency: make([]int, n),
	}
	for i := range p.Agents {
		d.position[p.Agents[i].ID] = i
		d.failedDependency[i] = -1
		d.lands = d.lands || p.Agents[i].Land != ""
	}
	for i := range p.Agents {
		d.missing[i] = len(p.Agents[i].After)
		for _, id := range p.Agents[i].After {
			before := d.position[id]
			d.dependents[before] = append(d.dependents[before], i)
		}
	}
	for i := range d.agents {
		d.passOn(i)
	}
	return d
}

// passOn updates the dependents of an agent that ended.
func (d *State) passOn(i int) {
	switch d.agents[i].Status {
	case agency.AgentComplete:
		for _, after := range d.dependents[i] {
			d.missing[after]--
		}
	case agency.AgentFailed, agency.AgentCancelled:
		for _, after := range d.dependents[i] {
			if d.failedDependency[after] < 0 || i < d.failedDependency[after] {
				d.failedDependency[after] = i
			}
		}
	case agency.AgentQueued, agency.AgentRunning:
	}
}

// Put updates an agent from the record.
func (d *State) Put(a *agency.SessionAgent) {
	i, before := a.Position, d.agents[a.Position].Status
	if d.agents[i].Run != a.Run {
		d.facts[i] = nil
	}
	d.agents[i] = *a
	if !before.Final() {
		d.passOn(i)
	}
}

// SetFacts sets the state of an agent's run.
func (d *State) SetFacts(i int, f RunFacts) { d.facts[i] = &f }

// DropFacts forgets the state of an agent's run.
func (d *State) DropFacts(i int) { d.facts[i] = nil }

// DropAllFacts forgets the state of all runs.
func (d *State) DropAllFacts() { clear(d.facts) }

// HasFacts reports whether the state of an agent's run is known.
func (d *State) HasFacts(i int) bool { return d.facts[i] != nil }

// HasNewAttempt reports whether an agent's run is known to have an attempt whose end was not
// processed yet, live or not.
func (d *State) HasNewAttempt(i int) bool {
	f := d.facts[i]
	return f != nil && f.Made && f.Attempt > d.agents[i].Attempt
}

// SetBusy marks the beginning or end of an action for an agent. During the action nothing else is
// decided about the agent. The state of its run is forgotten, because it is outdated.
func (d *State) SetBusy(i int, busy bool) { d.busy[i], d.facts[i] = busy, nil }

// Agent returns an agent as it is in the record.
func (d *State) Agent(i int) *agency.SessionAgent { return &d.agents[i] }

// Position returns the index in the plan of an agent, which must belong to it.
func (d *State) Position(id string) int { return d.position[id] }

// MissingFacts returns the agents that run and whose runs' state is unknown.
func (d *State) MissingFacts() []int {
	unseen := []int{}
	for i := range d.agents {
		if d.agents[i].Status == agency.AgentRunning && d.facts[i] == nil && !d.busy[i] {
			unseen = append(unseen, i)
		}
	}
	return unseen
}

// AddRateLimits adds, for the runners of rate-limited agents, until when they accept no work. A
// limit outlives the agent that met it.
func (d *State) AddRateLimits(c Clock, holds map[string]time.Time) {
	for i := range d.agents {
		runner := d.Plan.Agents[i].Runner
		if f := d.facts[i]; f != nil && d.agents[i].Status == agency.AgentRunning {
			if d.limits[i] = (time.Time{}); f.LimitedAt.After(d.tried[runner]) {
				d.limits[i] = d.limitedUntil(i)
			}
		}
		if until := d.limits[i]; c.Ahead(until) && until.After(holds[runner]) {
			holds[runner] = until
		}
	}
}

// DropRateLimit makes the limits that agents have met by now put off no other agent of the runner,
// because the user wants an immediate try.
func (d *State) DropRateLimit(runner string, now time.Time) {
	d.tried[runner] = now
	for i := range d.limits {
		if d.Plan.Agents[i].Runner == runner {
			d.limits[i] = time.Time{}
		}
	}
}

// Resume ends the limits that the agents have met by now: the user wants them to try again at once.
func (d *State) Resume(now time.Time) { d.resumed = now }

// Decide returns what to do now, and when to look again even if nothing happens; zero is never. It
// is pure: the same state, clock and limits lead to the same actions, and none is repeated once it
// is in the record. limited is until when each runner accepts no work.
func Decide(d *State, c Clock, limited map[string]time.Time) (actions []Action, next time.Time) {
	if d.Session.Status.Final() {
		return nil, time.Time{}
	}
	capacity := d.capacity(c)
	open, failed := 0, -1
	for i := range d.agents {
		switch status := d.agents[i].Status; {
		case !status.Final():
			open++
		case status == agency.AgentFailed && failed < 0:
			failed = i
		}
	}
	land, landing := d.land()
	if open == 0 && land == nil && !landing {
		return []Action{{Kind: ActSettle, Agent: -1}}, time.Time{}
	}
	if land != nil {
		actions = append(actions, *land)
	}
	for i := range d.agents {
		if d.agents[i].Status != agency.AgentRunning || d.busy[i] {
			continue
		}
		action, at := d.decide(i, c, limited)
		next = sooner(next, at)
		if action == nil || (action.Kind == ActStart || action.Kind == ActAgain) && !capacity.take(d.Plan.Agents[i].Runner) {
			continue
		}
		actions = append(actions, *action)
	}
	cancelled := d.cancelQueued(failed)
	actions = append(actions, cancelled...)
	if d.Session.Paused != "" || d.Session.CancelAt != nil || d.Plan.OnFailure == agency.StopOnFailure && failed >= 0 {
		return actions, next
	}
	gone := map[int]bool{}
	for i := range cancelled {
		gone[cancelled[i].Agent] = true
	}
	for i := range d.agents {
		if capacity.slots <= 0 {
			break
		}
		a, runner := &d.agents[i], d.Plan.Agents[i].Runner
		if a.Status != agency.AgentQueued || d.busy[i] || d.missing[i] > 0 || gone[i] || a.Error != "" {
			continue
		}
		if until := limited[runner]; until.After(c.Now) {
			next = sooner(next, until)
			continue
		}
		if capacity.take(runner) {
			actions = append(actions, Action{Kind: ActStart, Agent: i, stops: d.Plan.OnFailure == agency.StopOnFailure})
		}
	}
	return actions, next
}

// cancelQueued returns the ends of the agents that can no longer start. failed is the first agent
// that failed; -1 is none.
func (d *State) cancelQueued(failed int) []Action {
	var actions []Action
	cancel := func(i int, reason string) {
		actions = append(actions, Action{Kind: ActEnd, Agent: i, Status: agency.AgentCancelled, Reason: reason})
	}
	everyone := ""
	switch {
	case d.Session.CancelAt != nil:
		everyone = SessionWasCancelled
	case failed >= 0 && d.Plan.OnFailure == agency.StopOnFailure:
		everyone = fmt.Sprintf("agent %s failed", d.agents[failed].ID)
	case d.Plan.OnFailure == agency.AskOnFailure && d.Session.Paused != "":
		return nil // the user is asked what to do with them
	}
	reasons := map[int]string{}
	work := []int{}
	for i := range d.agents {
		switch {
		case d.agents[i].Status != agency.AgentQueued || d.busy[i]:
		case everyone != "":
			cancel(i, everyone)
		case d.failedDependency[i] >= 0:
			reasons[i] = d.cancelReason(d.failedDependency[i])
			work = append(work, i)
		}
	}
	for len(work) > 0 {
		i := work[0]
		work = work[1:]
		cancel(i, reasons[i])
		for _, after := range d.dependents[i] {
			if _, known := reasons[after]; !known && d.agents[after].Status == agency.AgentQueued && !d.busy[after] {
				reasons[after] = reasons[i]
				work = append(work, after)
			}
		}
	}
	return actions
}

// dependencyWord begins the reason of an agent that never starts because of a dependency.
const dependencyWord = "dependency "

// cancelReason returns why the dependents of an agent never start.
func (d *State) cancelReason(i int) string {
	a := &d.agents[i]
	switch {
	case a.Status == agency.AgentFailed:
		return dependencyWord + a.ID + " failed"
	case strings.HasPrefix(a.Error, dependencyWord):
		return a.Error // it never started either
	default:
		return dependencyWord + a.ID + " was cancelled"
	}
}

// sooner returns the earlier of two times, where zero is never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
