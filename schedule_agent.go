package agency

import (
	"fmt"
	"time"
)

// SessionWasCancelled and StoppedByHand are why an agent was cancelled that nothing was wrong with.
const (
	SessionWasCancelled = "the session was cancelled"
	StoppedByHand       = "stopped by hand"
)

// judge decides about one agent that runs, and when to look again.
func (d *Desk) judge(i int, c Clock, held map[string]time.Time) (*Action, time.Time) {
	a, f := &d.agents[i], d.facts[i]
	switch {
	case f == nil:
		return nil, time.Time{}
	case f.lives() && f.Attempt > a.Attempt:
		return d.judgeLive(i, c)
	case f.Made && f.Attempt > a.Attempt:
		return d.judgeEnd(i, c)
	default:
		return d.judgeBetween(i, c, held)
	}
}

// judgeLive decides about an attempt that lives.
func (d *Desk) judgeLive(i int, c Clock) (*Action, time.Time) {
	a, p, f := &d.agents[i], &d.Plan.Agents[i], d.facts[i]
	if f.State == Queued {
		return nil, time.Time{} // its start is told of
	}
	stop := func(reason string) (*Action, time.Time) {
		return d.action(Action{Kind: ActStop, Agent: i, Reason: reason}), time.Time{}
	}
	over, next := c.due(a.StartedAt, p.Timeout)
	switch {
	case d.Session.CancelAt != nil, a.Error != "": // or it was decided before
		return stop("")
	case over:
		return stop(timedOut(p))
	}
	if !f.ReadyAt.IsZero() && p.DoneWhen == DoneWhenReady {
		grace := d.Pace.ReadyQuiet
		switch {
		case f.Headless || f.Turn == TurnWorking:
			grace = d.Pace.ReadyGrace
		case f.Turn == TurnEnded:
			grace = 0
		}
		done, at := c.due(&f.ReadyAt, max(grace, 1))
		if done {
			return stop("")
		}
		next = sooner(next, at)
	}
	if !f.LimitedAt.IsZero() && f.Turn != TurnWorking {
		until := d.limitedUntil(i)
		if !until.After(c.Now) {
			return stop(limitedWords(until, c))
		}
		next = sooner(next, until)
	} else if !f.Asks {
		silent, at := c.due(&f.SignAt, p.IdleTimeout)
		if silent {
			return stop(fmt.Sprintf("no sign of life for %s", ShortDuration(p.IdleTimeout)))
		}
		next = sooner(next, at)
	}
	if a.PID == nil && f.PID != 0 || a.PID != nil && *a.PID != f.PID {
		return d.action(Action{Kind: ActNote, Agent: i, PID: f.PID}), next
	}
	return nil, next
}

// judgeEnd decides about an attempt that ended and whose end nobody took note of yet.
func (d *Desk) judgeEnd(i int, c Clock) (*Action, time.Time) {
	a, p, f := &d.agents[i], &d.Plan.Agents[i], d.facts[i]
	over, next := c.due(a.StartedAt, p.Timeout)
	end := func(status AgentStatus, reason string) (*Action, time.Time) {
		return d.action(d.ended(i, status, reason)), time.Time{}
	}
	switch {
	case f.State == Completed && p.DoneWhen == DoneWhenExit, f.State == Completed && !f.Asks,
		!f.ReadyAt.IsZero() && p.DoneWhen == DoneWhenReady:
		return end(AgentComplete, "")
	case d.Session.CancelAt != nil:
		return end(AgentCancelled, SessionWasCancelled)
	case over:
		return end(AgentFailed, timedOut(p))
	case f.State == Completed:
		return nil, next // it asks, and keeps its place until somebody answers
	case !f.LimitedAt.IsZero() && (f.State == Failed || a.Error != ""):
		until := d.limitedUntil(i)
		return d.action(Action{Kind: ActRetry, Agent: i, Attempt: f.Attempt, ExitCode: f.ExitCode, NotBefore: until, Reason: limitedWords(until, c)}), time.Time{}
	case a.Error != "":
		return d.action(d.failure(i, f.Attempt, a.Error, false, c)), time.Time{}
	case f.State == Killed:
		return end(AgentCancelled, StoppedByHand)
	default:
		return d.action(d.failure(i, f.Attempt, f.Reason, blameless(f.Code), c)), time.Time{}
	}
}

// judgeBetween decides about an agent none of whose attempts is under way: its run was not made yet, or the end of the last one
// is in the record.
func (d *Desk) judgeBetween(i int, c Clock, held map[string]time.Time) (*Action, time.Time) {
	a, p, f := &d.agents[i], &d.Plan.Agents[i], d.facts[i]
	over, next := c.due(a.StartedAt, p.Timeout)
	switch {
	case d.Session.CancelAt != nil:
		return d.action(d.ended(i, AgentCancelled, SessionWasCancelled)), time.Time{}
	case over:
		return d.action(d.ended(i, AgentFailed, timedOut(p))), time.Time{}
	case d.Session.Paused != "":
		return nil, next
	case a.NotBefore != nil && a.NotBefore.After(c.Now):
		return nil, sooner(next, *a.NotBefore)
	case held[p.Runner].After(c.Now):
		return nil, sooner(next, held[p.Runner])
	case f.Made:
		return d.action(Action{Kind: ActAgain, Agent: i}), time.Time{}
	default:
		return d.action(Action{Kind: ActStart, Agent: i}), time.Time{}
	}
}

// Unstarted decides what follows when the start of an agent failed without an attempt of which the record tells.
func (d *Desk) Unstarted(i int, code Code, reason string, c Clock) Action {
	return *d.action(d.failure(i, d.agents[i].Attempt, reason, blameless(code), c))
}

// action adds which run it is about.
func (d *Desk) action(x Action) *Action {
	a := &d.agents[x.Agent]
	x.Run, x.ends = a.Run, endsOf(a)
	return &x
}

func (d *Desk) ended(i int, status AgentStatus, reason string) Action {
	x := Action{Kind: ActEnd, Agent: i, Status: status, Reason: reason}
	if f := d.facts[i]; f != nil && f.Made {
		x.Attempt = f.Attempt
		if status != AgentComplete || f.State == Completed {
			x.ExitCode = f.ExitCode // one that was stopped when it was ready did not exit by itself
		}
	}
	if status == AgentFailed && d.Plan.OnFailure == AskOnFailure {
		for j := range d.agents {
			if d.agents[j].Status == AgentQueued {
				x.Pause = fmt.Sprintf("agent %s failed", d.agents[i].ID)
				break
			}
		}
	}
	return x
}

// failure is another attempt, or the end where none is left. What is no fault of the agent's spends no retry.
func (d *Desk) failure(i, attempt int, reason string, blameless bool, c Clock) Action {
	a, p := &d.agents[i], &d.Plan.Agents[i]
	x := Action{Kind: ActRetry, Agent: i, Attempt: attempt, Reason: reason, Lost: blameless}
	if f := d.facts[i]; f != nil && f.Made && f.Attempt == attempt {
		x.ExitCode = f.ExitCode
	}
	switch {
	case blameless && a.Losses < d.Pace.Losses:
		if a.Losses > 0 {
			x.NotBefore = c.Now.Add(nth(d.Pace.Backoff, a.Losses-1))
		}
	case !blameless && a.Tries < p.Retries:
		x.NotBefore = c.Now.Add(nth(d.Pace.Backoff, a.Tries))
	default:
		end := d.ended(i, AgentFailed, reason)
		end.Attempt, end.Tried, end.Lost = attempt, !blameless, blameless
		return end
	}
	x.Tried = !blameless
	return x
}

// blameless says that an attempt ended by no fault of the agent's.
func blameless(code Code) bool {
	switch code {
	case CodeRunnerDisappeared, CodeStartCutOff, CodeTmuxStartFailed, CodeTmuxSessionNotFound, CodeDaemonConnectFailed, CodeDBError, CodeDBLocked, CodeInternal:
		return true
	default:
		return false
	}
}

// limitedUntil is until when an agent's model takes no work.
func (d *Desk) limitedUntil(i int) time.Time {
	a, f := &d.agents[i], d.facts[i]
	switch {
	case f.Attempt <= a.Attempt && a.NotBefore != nil:
		return *a.NotBefore
	case f.Attempt <= a.Attempt:
		return time.Time{}
	case !f.ResetAt.IsZero():
		return f.ResetAt
	default:
		// What ended neither by its own fault nor by a loss met a limit too.
		return f.LimitedAt.Add(nth(d.Pace.Limited, max(0, a.Attempt-a.Tries-a.Losses)))
	}
}

func limitedWords(until time.Time, c Clock) string {
	return "rate limited until " + until.In(c.Now.Location()).Format("15:04")
}

func timedOut(p *PlanAgent) string { return "timed out after " + ShortDuration(p.Timeout) }

// due says whether so much time has passed, and when it will have. Zero is no limit.
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
