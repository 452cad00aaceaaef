package agency

import (
	"fmt"
	"strings"
	"time"
)

// busyCPU is the share of one core above which an agent's processes do something.
const busyCPU = 0.05

// Pulse is what must be measured to tell an agent that works in silence from one that hangs.
type Pulse struct {
	CPU     time.Duration // that its processes have used
	FilesAt time.Time     // the newest change of a file in its worktree; zero is unknown
}

// measured is what is known from the measurements of an attempt. It is of this state only: one that begins anew measures anew.
type measured struct {
	attempt  int
	pulse    Pulse
	at       time.Time
	workedAt time.Time // the newest sign of life that a measurement told of
	silent   time.Time // the sign since which two measurements told of none
}

// judgeSilence says why an agent is to be stopped that has given no sign of life for too long, or what to do to find out, or when
// to look again. What it changes and computes is measured only when all else is silent: at half of its time, and at the end. A
// silence that it declared is no bad sign before its end.
func (d *SessionState) judgeSilence(i int, c Clock) (reason string, measure *Action, next time.Time) {
	p, f, m := &d.Plan.Agents[i], d.facts[i], &d.measured[i]
	since := d.signAt(i)
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
		return "no sign of life for " + exactDuration(p.IdleTimeout), nil, time.Time{}
	}
	if wait := half - c.Elapsed(m.at); m.attempt == f.Attempt && m.at.After(since) && wait > 0 {
		return "", nil, c.Now.Add(max(wait, limit-silent))
	}
	return "", d.action(Action{Kind: ActMeasure, Agent: i, Attempt: f.Attempt}), time.Time{}
}

// signAt is the newest sign of life of an agent, measured or not.
func (d *SessionState) signAt(i int) time.Time {
	f, m := d.facts[i], &d.measured[i]
	if m.attempt == f.Attempt && m.workedAt.After(f.SignAt) {
		return m.workedAt
	}
	return f.SignAt
}

// Measured takes a measurement of an agent's attempt, made at a time. Nothing comes of it while it is not known how the run stands.
func (d *SessionState) Measured(i, attempt int, pulse Pulse, at time.Time, c Clock) {
	f, before := d.facts[i], d.measured[i]
	if f == nil || f.Attempt != attempt {
		return
	}
	now := measured{attempt: attempt, pulse: pulse, at: at}
	if before.attempt == attempt {
		now.workedAt = before.workedAt
	}
	since := d.signAt(i)
	passed := c.Elapsed(before.at) - c.Elapsed(at)
	second := before.attempt == attempt && !before.at.Before(since)
	switch {
	case second && float64(pulse.CPU-before.pulse.CPU) > busyCPU*float64(passed):
		now.workedAt = at
	case pulse.FilesAt.After(since) && !pulse.FilesAt.After(at):
		now.workedAt = pulse.FilesAt
	case second && pulse.FilesAt.After(before.pulse.FilesAt):
		now.workedAt = at // the clock of the files is ahead
	case second && before.at.After(since) && passed >= d.Plan.Agents[i].IdleTimeout/2:
		now.silent = since
	}
	d.measured[i] = now
}

// exactDuration is a duration without the zeros at its end: 1m10s, 20m, 2h.
func exactDuration(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

func timedOut(p *PlanAgent) string {
	return fmt.Sprintf("timed out after %s", exactDuration(p.Timeout))
}
