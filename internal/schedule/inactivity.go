package schedule

import (
	"fmt"
	"time"

	"agency"
	"agency/internal/duration"
)

// busyCPU is the share of one core above which an agent's processes count as active.
const busyCPU = 0.05

// measured is the knowledge from the measurements of an attempt. It is kept in this state only; a
// new state measures anew.
type measured struct {
	attempt  int
	activity agency.Activity
	at       time.Time
	workedAt time.Time // the newest measured sign of life
	silent   time.Time // the sign of life after which two measurements found none
}

// decideInactivity returns why an agent that has given no sign of life for too long must be
// stopped, or the measurement that decides it, or when to look again. Its file changes and
// processor time are measured only when there are no other signs: at half of the time, and at the
// end. Inactivity that the agent declared does not count until its declared end.
func (d *State) decideInactivity(i int, c Clock) (reason string, measure *Action, next time.Time) {
	p, f, m := &d.Plan.Agents[i], d.facts[i], &d.measured[i]
	since := d.signalAt(i)
	if p.IdleTimeout <= 0 || since.IsZero() {
		return "", nil, time.Time{}
	}
	limit, half := p.IdleTimeout, p.IdleTimeout/2
	if f.QuietUntil.After(since) {
		limit = max(limit, f.QuietUntil.Sub(since))
	}
	silent := c.Elapsed(since)
	if left := limit - half - silent; left > 0 {
		return "", nil, c.Now.Add(left)
	}
	if left := limit - silent; left <= 0 && m.attempt == f.Attempt && m.silent.Equal(since) {
		return "no sign of life for " + duration.Exact(p.IdleTimeout), nil, time.Time{}
	}
	if wait := half - c.Elapsed(m.at); m.attempt == f.Attempt && m.at.After(since) && wait > 0 {
		return "", nil, c.Now.Add(max(wait, limit-silent))
	}
	return "", d.action(Action{Kind: ActMeasure, Agent: i, Attempt: f.Attempt}), time.Time{}
}

// signalAt returns the newest sign of life of an agent, measured or not.
func (d *State) signalAt(i int) time.Time {
	f, m := d.facts[i], &d.measured[i]
	if m.attempt == f.Attempt && m.workedAt.After(f.SignalAt) {
		return m.workedAt
	}
	return f.SignalAt
}

// Measured applies a measurement of an agent's attempt at a time. It has no effect while the state
// of the run is unknown.
func (d *State) Measured(i, attempt int, activity agency.Activity, at time.Time, c Clock) {
	f, before := d.facts[i], d.measured[i]
	if f == nil || f.Attempt != attempt {
		return
	}
	now := measured{attempt: attempt, activity: activity, at: at}
	if before.attempt == attempt {
		now.workedAt = before.workedAt
	}
	since := d.signalAt(i)
	passed := c.Elapsed(before.at) - c.Elapsed(at)
	second := before.attempt == attempt && !before.at.Before(since)
	switch {
	case second && float64(activity.CPU-before.activity.CPU) > busyCPU*float64(passed):
		now.workedAt = at
	case activity.FilesAt.After(since) && !activity.FilesAt.After(at):
		now.workedAt = activity.FilesAt
	case second && activity.FilesAt.After(before.activity.FilesAt):
		now.workedAt = at // the clock of the files is ahead
	case second && before.at.After(since) && passed >= d.Plan.Agents[i].IdleTimeout/2:
		now.silent = since
	}
	d.measured[i] = now
}

func timedOut(p *agency.PlanAgent) string {
	return fmt.Sprintf("timed out after %s", duration.Exact(p.Timeout))
}
