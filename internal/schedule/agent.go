package schedule

import (
	"fmt"
	"time"

	"agency"
)

// SessionWasCancelled and StoppedByHand are why an agent was cancelled that had not failed.
const (
	SessionWasCancelled = "the session was cancelled"
	StoppedByHand       = "stopped by hand"
)

// decide decides about one running agent, and when to look again.
func (d *State) decide(i int, c Clock, limited map[string]time.Time) (*Action, time.Time) {
	a, f := &d.agents[i], d.facts[i]
	switch {
	case f == nil:
		return nil, time.Time{}
	case f.lives() && f.Attempt > a.Attempt:
		return d.decideLive(i, c)
	case f.Made && f.Attempt > a.Attempt:
		return d.decideEnd(i, c)
	default:
		return d.decideBetween(i, c, limited)
	}
}

// decideLive decides about a live attempt.
func (d *State) decideLive(i int, c Clock) (*Action, time.Time) {
	a, p, f := &d.agents[i], &d.Plan.Agents[i], d.facts[i]
	if f.State == agency.Queued {
		return nil, time.Time{} // its start is recorded
	}
	stop := func(reason string) (*Action, time.Time) {
		return d.action(Action{Kind: ActStop, Agent: i, Attempt: f.Attempt, Reason: reason}), time.Time{}
	}
	over, next := c.due(a.StartedAt, p.Timeout)
	switch {
	case d.Session.CancelAt != nil, a.Stopping == f.Attempt: // the stop is in the record
		return d.action(Action{Kind: ActStop, Agent: i}), time.Time{}
	case over:
		return stop(timedOut(p))
	}
	if !f.ReadyAt.IsZero() && p.DoneWhen == agency.DoneWhenReady {
		grace := d.Retry.ReadyQuiet
		switch {
		case f.Headless || f.Turn == agency.TurnWorking:
			grace = d.Retry.ReadyGrace
		case f.Turn == agency.TurnEnded:
			grace = 0
		}
		done, at := c.due(&f.ReadyAt, max(grace, 1))
		if done || c.wrong(f.ReadyAt) {
			return stop("")
		}
		next = sooner(next, at)
	}
	if f.AtLimit() {
		until := d.limitedUntil(i)
		if !c.Ahead(until) {
			x, _ := stop(limitedWords(until, c))
			x.NotBefore = until
			return x, time.Time{}
		}
		next = sooner(next, until)
	} else if !f.Asks {
		reason, measure, at := d.decideInactivity(i, c)
		if reason != "" {
			return stop(reason)
		}
		if note := d.noteOf(i); note == nil && measure != nil {
			return measure, next
		}
		next = sooner(next, at)
	}
	return d.noteOf(i), next
}

// noteOf returns the action that records the news of the newest attempt, or nil when there is none.
// What the record holds of the attempt before is outdated.
func (d *State) noteOf(i int) *Action {
	a, f := &d.agents[i], d.facts[i]
	pid := 0
	if a.PID != nil {
		pid = *a.PID
	}
	if pid == f.PID && a.Error == "" && a.NotBefore == nil && a.Waits == 0 {
		return nil
	}
	return d.action(Action{Kind: ActNote, Agent: i, Attempt: f.Attempt, PID: f.PID})
}

// decideEnd decides about an attempt that ended and whose end was not processed yet.
func (d *State) decideEnd(i int, c Clock) (*Action, time.Time) {
	a, p, f := &d.agents[i], &d.Plan.Agents[i], d.facts[i]
	if f.Restarting {
		// A restart makes the next attempt itself, and that one counts. None comes when the daemon
		// died meanwhile.
		if waited, at := c.due(&f.EndedAt, d.Retry.Restart); !waited && !at.IsZero() && !c.wrong(f.EndedAt) {
			return nil, at
		}
	}
	over, next := c.due(a.StartedAt, p.Timeout)
	stopped := a.Stopping == f.Attempt
	end := func(status agency.AgentStatus, reason string) (*Action, time.Time) {
		return d.action(d.ended(i, status, reason)), time.Time{}
	}
	failure := func(reason string, of faultKind) (*Action, time.Time) {
		return d.action(d.failure(i, f.Attempt, reason, of, c)), time.Time{}
	}
	switch {
	case stopped && a.StopReason == "", f.State == agency.Completed && p.DoneWhen == agency.DoneWhenExit, f.State == agency.Completed && !f.Asks,
		!f.ReadyAt.IsZero() && p.DoneWhen == agency.DoneWhenReady && !f.Restarting:
		return end(agency.AgentComplete, "")
	case d.Session.CancelAt != nil:
		return end(agency.AgentCancelled, SessionWasCancelled)
	case over:
		return end(agency.AgentFailed, timedOut(p))
	case f.State == agency.Completed:
		return d.noteOf(i), next // it waits for an answer and keeps its place until then
	case !f.LimitedAt.IsZero() && (f.State == agency.Failed || stopped):
		until := d.limitedUntil(i)
		return d.action(Action{Kind: ActRetry, Agent: i, Attempt: f.Attempt, ExitCode: f.ExitCode, NotBefore: until, Reason: limitedWords(until, c)}), time.Time{}
	case stopped:
		return failure(a.StopReason, ownFault)
	case f.Restarting:
		return failure("its restart was cut off", loss)
	case f.State == agency.Killed:
		return end(agency.AgentCancelled, StoppedByHand)
	default:
		return failure(f.Reason, faultOf(f.Code, f.Ran))
	}
}

// decideBetween decides about an agent without an active attempt: its run was not made yet, or the
// end of the last attempt is in the record.
func (d *State) decideBetween(i int, c Clock, limited map[string]time.Time) (*Action, time.Time) {
	a, p, f := &d.agents[i], &d.Plan.Agents[i], d.facts[i]
	over, next := c.due(a.StartedAt, p.Timeout)
	switch {
	case d.Session.CancelAt != nil:
		return d.action(d.ended(i, agency.AgentCancelled, SessionWasCancelled)), time.Time{}
	case over:
		return d.action(d.ended(i, agency.AgentFailed, timedOut(p))), time.Time{}
	case d.Session.Paused != "":
		return nil, next
	case a.NotBefore != nil && c.Ahead(*a.NotBefore):
		return nil, sooner(next, *a.NotBefore)
	case limited[p.Runner].After(c.Now):
		return nil, sooner(next, limited[p.Runner])
	case f.Made:
		return d.action(Action{Kind: ActAgain, Agent: i}), time.Time{}
	default:
		return d.action(Action{Kind: ActStart, Agent: i}), time.Time{}
	}
}

// Unstarted returns what follows when the start of an agent failed and the record has no attempt
// that shows it.
func (d *State) Unstarted(i int, code agency.Code, reason string, c Clock) Action {
	return *d.action(d.failure(i, d.agents[i].Attempt, reason, faultOf(code, false), c))
}

// action fills in the run that an action is about.
func (d *State) action(x Action) *Action {
	a := &d.agents[x.Agent]
	x.Run, x.ends = a.Run, endsOf(a)
	return &x
}

func (d *State) ended(i int, status agency.AgentStatus, reason string) Action {
	x := Action{Kind: ActEnd, Agent: i, Status: status, Reason: reason}
	if f := d.facts[i]; f != nil && f.Made {
		x.Attempt = f.Attempt
		if status != agency.AgentComplete || f.State == agency.Completed {
			x.ExitCode = f.ExitCode // one that was stopped because it was ready did not exit by itself
		}
	}
	if status == agency.AgentFailed && d.Plan.OnFailure == agency.AskOnFailure {
		for j := range d.agents {
			if d.agents[j].Status == agency.AgentQueued {
				x.Pause = fmt.Sprintf("agent %s failed", d.agents[i].ID)
				break
			}
		}
	}
	return x
}

// failure returns another attempt, or the end when none is left. Only the agent's own fault uses up
// a retry.
func (d *State) failure(i, attempt int, reason string, of faultKind, c Clock) Action {
	a, p := &d.agents[i], &d.Plan.Agents[i]
	x := Action{Kind: ActRetry, Agent: i, Attempt: attempt, Reason: reason, Tried: of == ownFault, Lost: of == loss}
	if f := d.facts[i]; f != nil && f.Made && f.Attempt == attempt {
		x.ExitCode = f.ExitCode
	}
	switch {
	case of == ownFault && a.Tries < p.Retries:
		x.NotBefore = c.Now.Add(nth(d.Retry.Backoff, a.Tries))
	case of == loss && a.Losses < d.Retry.Losses:
		if a.Losses > 0 {
			x.NotBefore = c.Now.Add(nth(d.Retry.Backoff, a.Losses-1))
		}
	case of == machineFault && a.Waits < d.Retry.Waits:
		x.Waits, x.Reason, x.NotBefore = a.Waits+1, agency.WaitingWord+reason, c.Now.Add(nth(d.Retry.Wait, a.Waits))
	case of == notItsTurn:
		x.Waits, x.Reason, x.NotBefore = min(a.Waits+1, len(d.Retry.Wait)), agency.WaitingWord+reason, c.Now.Add(nth(d.Retry.Wait, a.Waits))
	case of == needsUser:
		x.Reason, x.Pause = agency.WaitingWord+reason, "agent "+a.ID+" cannot start: "+reason
	default:
		end := d.ended(i, agency.AgentFailed, reason)
		end.Attempt, end.Tried, end.Lost = attempt, x.Tried, x.Lost
		return end
	}
	return x
}

// limitedUntil returns until when an agent's model accepts no work.
func (d *State) limitedUntil(i int) time.Time {
	a, f := &d.agents[i], d.facts[i]
	switch {
	case f.Attempt <= a.Attempt && a.NotBefore != nil:
		return *a.NotBefore
	case f.Attempt <= a.Attempt:
		return time.Time{}
	case a.Stopping == f.Attempt && a.NotBefore != nil: // d.resumed is lost when the daemon restarts
		return *a.NotBefore
	case !f.LimitedAt.After(d.resumed):
		return d.resumed
	case !f.ResetAt.IsZero():
		return f.ResetAt
	default:
		// An attempt that ended neither by the agent's own fault nor by a loss also met a rate
		// limit.
		return f.LimitedAt.Add(nth(d.Retry.Limited, max(0, a.Attempt-a.Tries-a.Losses)))
	}
}

func limitedWords(until time.Time, c Clock) string {
	return "rate limited until " + until.In(c.Now.Location()).Format("15:04")
}

// due reports whether this much time has passed since then, and when it will have. A limit of zero
// is none.
func (c Clock) due(since *time.Time, limit time.Duration) (over bool, at time.Time) {
	if since == nil || since.IsZero() || limit <= 0 {
		return false, time.Time{}
	}
	left := limit - c.Elapsed(*since)
	return left <= 0, c.Now.Add(left)
}

func nth(list []time.Duration, n int) time.Duration {
	if len(list) == 0 {
		return 0
	}
	return list[min(n, len(list)-1)]
}
