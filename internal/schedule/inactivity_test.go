package schedule_test

import (
	"testing"
	"time"

	"agency"
	"agency/internal/schedule"
)

// silentAgent is a session with one agent that gives no sign of life, and what a measurement of the
// agent finds.
type silentAgent struct {
	state    *schedule.State
	began    time.Time
	now      time.Time
	facts    schedule.RunFacts
	activity func(now time.Time) agency.Activity
	measured int
}

func newSilentAgent(timeout time.Duration, activity func(now time.Time) agency.Activity) *silentAgent {
	began := time.Date(2026, 2, 1, 14, 30, 22, 0, time.UTC)
	plan := agency.Plan{Agents: []agency.PlanAgent{{ID: "a", IdleTimeout: timeout}}}
	agents := []agency.SessionAgent{{ID: "a", Status: agency.AgentRunning, Run: "r", StartedAt: &began}}
	return &silentAgent{
		state: schedule.NewState(agency.Session{Status: agency.SessionRunning, MaxParallel: 1}, &plan, agents, retry), began: began, now: began,
		facts: schedule.RunFacts{Made: true, Attempt: 1, State: agency.Running, SignalAt: began}, activity: activity,
	}
}

func (s *silentAgent) clock() schedule.Clock {
	return schedule.Clock{Now: s.now, Elapsed: func(since time.Time) time.Duration { return s.now.Sub(since) }}
}

// goOn lets time pass until the agent is stopped, or until most has passed. It returns when and why
// the agent was stopped.
func (s *silentAgent) goOn(t *testing.T, most time.Duration) (after time.Duration, why string) {
	t.Helper()
	for rounds := 0; s.now.Sub(s.began) < most; rounds++ {
		if rounds > 10_000 {
			t.Fatal("it never comes to rest")
		}
		s.state.SetFacts(0, s.facts)
		actions, next := schedule.Decide(s.state, s.clock(), nil)
		switch {
		case len(actions) == 0 && next.After(s.now):
			s.now = next
		case len(actions) == 1 && actions[0].Kind == schedule.ActMeasure:
			s.measured++
			s.state.Measured(0, actions[0].Attempt, s.activity(s.now), s.now, s.clock())
		case len(actions) == 1 && actions[0].Kind == schedule.ActStop:
			return s.now.Sub(s.began), actions[0].Reason
		default:
			t.Fatalf("it decides %+v, and to look again at %s", actions, next)
		}
	}
	return s.now.Sub(s.began), ""
}

func TestIdleTimeout(t *testing.T) {
	t.Parallel()
	const timeout, hour = 70 * time.Second, time.Hour
	began := newSilentAgent(timeout, nil).began
	for name, test := range map[string]struct {
		activity func(now time.Time) agency.Activity
		quiet    time.Duration // declared by the agent
		after    time.Duration
		ends     bool
	}{
		"nothing": {func(time.Time) agency.Activity { return agency.Activity{} }, 0, timeout, true},
		"a file each second": {func(now time.Time) agency.Activity {
			return agency.Activity{FilesAt: now.Truncate(time.Second)}
		}, 0, hour, false},
		"a file for two minutes": {func(now time.Time) agency.Activity {
			return agency.Activity{FilesAt: earlier(now, began.Add(2*time.Minute))}
		}, 0, 2*time.Minute + timeout, true},
		"files of a clock that is ahead": {func(now time.Time) agency.Activity {
			return agency.Activity{FilesAt: now.Add(time.Hour)}
		}, 0, hour, false},
		"a tenth of a core":  {func(now time.Time) agency.Activity { return agency.Activity{CPU: now.Sub(began) / 10} }, 0, hour, false},
		"a hundredth of one": {func(now time.Time) agency.Activity { return agency.Activity{CPU: now.Sub(began) / 100} }, 0, timeout, true},
		"half a core now and then": {func(now time.Time) agency.Activity {
			// The first minute of every two.
			passed := now.Sub(began)
			return agency.Activity{CPU: (passed.Truncate(2*time.Minute) + min(passed%(2*time.Minute), time.Minute)*2) / 4}
		}, 0, hour, false},
		"a lot long ago":     {func(time.Time) agency.Activity { return agency.Activity{CPU: time.Hour} }, 0, timeout, true},
		"a declared silence": {func(time.Time) agency.Activity { return agency.Activity{} }, 20 * time.Minute, 20 * time.Minute, true},
		"a short one":        {func(time.Time) agency.Activity { return agency.Activity{} }, time.Second, timeout, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSilentAgent(timeout, test.activity)
			if test.quiet > 0 {
				s.facts.QuietUntil = s.began.Add(test.quiet)
			}
			after, why := s.goOn(t, hour)
			if ended := why != ""; ended != test.ends || ended && (after != test.after || why != "no sign of life for 1m10s") {
				t.Errorf("after %s: %q, want an end %v after %s", after, why, test.ends, test.after)
			}
			if most := 2 + 2*int(after/timeout)*2; s.measured > most {
				t.Errorf("it was measured %d times in %s", s.measured, after)
			}
		})
	}
}

// A sign of life that is already known makes a measurement unnecessary.
func TestIdleTimeoutMeasuresLate(t *testing.T) {
	t.Parallel()
	s := newSilentAgent(time.Minute, func(time.Time) agency.Activity { return agency.Activity{} })
	for range 100 {
		s.now = s.now.Add(29 * time.Second)
		s.facts.SignalAt = s.now
		s.state.SetFacts(0, s.facts)
		if actions, next := schedule.Decide(s.state, s.clock(), nil); len(actions) > 0 || !next.Equal(s.now.Add(30*time.Second)) {
			t.Fatalf("it decides %+v, and to look again at %s", actions, next)
		}
	}
}

// A daemon that finds an idle agent also measures twice before it reports that.
func TestIdleTimeoutAfterRestart(t *testing.T) {
	t.Parallel()
	s := newSilentAgent(time.Minute, func(time.Time) agency.Activity { return agency.Activity{} })
	s.now = s.began.Add(time.Hour)
	if after, why := s.goOn(t, 2*time.Hour); after != time.Hour+30*time.Second || why != "no sign of life for 1m" || s.measured != 2 {
		t.Errorf("after %s and %d measurements: %q", after, s.measured, why)
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
