package schedule_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/schedule"
)

// limited is a session of one agent that met a rate limit.
func limited(now time.Time, change func(a *agency.SessionAgent, f *schedule.RunFacts)) *schedule.State {
	a := agency.SessionAgent{ID: "one", Status: agency.AgentRunning, Run: "r1", Attempt: 1, StartedAt: &now, Error: "rate limited"}
	f := schedule.RunFacts{Made: true, Attempt: 1, State: agency.Failed, LimitedAt: now}
	change(&a, &f)
	plan := &agency.Plan{Agents: []agency.PlanAgent{{ID: "one", Runner: "a", DoneWhen: agency.DoneWhenReady}}}
	d := schedule.NewState(agency.Session{Status: agency.SessionRunning, MaxParallel: 1}, plan, []agency.SessionAgent{a}, retry)
	d.SetFacts(0, f)
	return d
}

// A wait that was set by a clock that was wrong by days ends when the clock is right again, for
// every kind of wait.
func TestScheduleAfterAWrongClock(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 2, 1, 14, 30, 22, 0, time.UTC)
	wrong := now.Add(240 * time.Hour)
	clock := schedule.Clock{Now: now, Elapsed: func(since time.Time) time.Duration { return max(now.Sub(since), 0) }}
	for name, test := range map[string]struct {
		change func(a *agency.SessionAgent, f *schedule.RunFacts)
		want   schedule.ActionKind
		until  time.Time
	}{
		"between two attempts": {func(a *agency.SessionAgent, _ *schedule.RunFacts) { a.NotBefore = new(wrong.Add(time.Minute)) }, schedule.ActAgain, time.Time{}},
		"longest of all":       {func(a *agency.SessionAgent, _ *schedule.RunFacts) { a.NotBefore = new(now.Add(schedule.LongestHold)) }, "", now.Add(schedule.LongestHold)},
		"ready": {func(_ *agency.SessionAgent, f *schedule.RunFacts) {
			f.Attempt, f.State, f.LimitedAt, f.ReadyAt = 2, agency.Running, time.Time{}, wrong
		}, schedule.ActStop, time.Time{}},
		"restarting": {func(_ *agency.SessionAgent, f *schedule.RunFacts) {
			f.Attempt, f.State, f.LimitedAt, f.Restarting, f.EndedAt = 2, agency.Killed, time.Time{}, true, wrong
		}, schedule.ActRetry, time.Time{}},
		"alive at rest": {func(_ *agency.SessionAgent, f *schedule.RunFacts) {
			f.Attempt, f.State, f.LimitedAt, f.ResetAt = 2, agency.Running, wrong, wrong.Add(time.Hour)
		}, schedule.ActStop, time.Time{}},
	} {
		d := limited(now, test.change)
		holds := map[string]time.Time{}
		d.AddRateLimits(clock, holds)
		if !holds["a"].Equal(test.until) {
			t.Errorf("%s: its runner is held until %s, want %s", name, holds["a"], test.until)
		}
		if wait := d.Waits(clock, holds)[0]; !wait.Until.Equal(test.until) {
			t.Errorf("%s: it waits until %s, want %s", name, wait.Until, test.until)
		}
		actions, next := schedule.Decide(d, clock, holds)
		got := schedule.ActionKind("")
		if len(actions) > 0 {
			got = actions[0].Kind
		}
		if got != test.want || !next.Equal(test.until) {
			t.Errorf("%s: it decides %q until %s, want %q until %s", name, got, next, test.want, test.until)
		}
	}
}

// A limit that the user lifted stays lifted when another daemon processes the end of the attempt that
// met it.
func TestLiftedLimitOutlivesTheDaemon(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 2, 1, 14, 30, 22, 0, time.UTC)
	f := schedule.RunFacts{Made: true, Attempt: 2, State: agency.Running, Ran: true, Turn: agency.TurnEnded, LimitedAt: now, ResetAt: now.Add(time.Hour)}
	d := limited(now, func(_ *agency.SessionAgent, first *schedule.RunFacts) { *first = f })
	resumed := now.Add(time.Minute)
	clock := schedule.Clock{Now: resumed, Elapsed: resumed.Sub}
	d.Resume(resumed)
	s, a := d.Session, *d.Agent(0)
	stop, _ := schedule.Decide(d, clock, nil)
	if len(stop) != 1 || stop[0].Kind != schedule.ActStop || !stop[0].Apply(&s, &a, "", resumed) {
		t.Fatalf("the resumed session decides %+v", stop)
	}
	d = schedule.NewState(s, d.Plan, []agency.SessionAgent{a}, retry)
	f.State = agency.Killed
	d.SetFacts(0, f)
	holds := map[string]time.Time{}
	d.AddRateLimits(clock, holds)
	again, _ := schedule.Decide(d, clock, holds)
	if len(holds) > 0 || len(again) != 1 || again[0].Kind != schedule.ActRetry || again[0].NotBefore.After(resumed) {
		t.Errorf("the next daemon holds %v and decides %+v", holds, again)
	}
}

// A rate limit belongs to the runner: it stays in effect when the agent that met it is cancelled,
// and its run is unknown.
func TestRateLimitOutlivesItsAgent(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 2, 1, 14, 30, 22, 0, time.UTC)
	reset := now.Add(time.Hour)
	d := limited(now, func(a *agency.SessionAgent, _ *schedule.RunFacts) { a.NotBefore = &reset })
	limited := func(at time.Time) map[string]time.Time {
		holds := map[string]time.Time{}
		d.AddRateLimits(schedule.Clock{Now: at, Elapsed: at.Sub}, holds)
		return holds
	}
	want := map[string]time.Time{"a": reset}
	check := func(when string, at time.Time, want map[string]time.Time) {
		t.Helper()
		if diff := cmp.Diff(want, limited(at)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	check("while it waits", now, want)
	d.SetBusy(0, true)
	check("while it is stopped", now, want)
	d.Put(&agency.SessionAgent{ID: "one", Status: agency.AgentCancelled, Run: "r1", Attempt: 1})
	d.DropAllFacts()
	check("when it is cancelled", now.Add(time.Minute), want)
	check("at its end", reset, map[string]time.Time{})
	d.DropRateLimit("a", now.Add(time.Minute))
	check("when the user wants it tried", now.Add(time.Minute), map[string]time.Time{})
}

// An agent that rests at its rate limit leaves its place to an agent of another runner, until it
// works again or the limit is over.
func TestRestingAtTheLimitFreesThePlace(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 2, 1, 14, 30, 22, 0, time.UTC)
	reset := now.Add(time.Hour)
	plan := &agency.Plan{Agents: []agency.PlanAgent{
		{ID: "rests", Runner: "a", DoneWhen: agency.DoneWhenReady}, {ID: "next", Runner: "b", DoneWhen: agency.DoneWhenReady},
	}}
	agents := []agency.SessionAgent{
		{ID: "rests", Status: agency.AgentRunning, Run: "r1", StartedAt: &now},
		{Position: 1, ID: "next", Status: agency.AgentQueued},
	}
	for name, test := range map[string]struct {
		turn agency.Turn
		at   time.Time
		want []schedule.ActionKind
	}{
		"at its limit":           {agency.TurnEnded, now, []schedule.ActionKind{schedule.ActStart}},
		"working in spite of it": {agency.TurnWorking, now, nil},
		"the limit is over":      {agency.TurnEnded, reset, []schedule.ActionKind{schedule.ActStop}},
	} {
		d := schedule.NewState(agency.Session{Status: agency.SessionRunning, MaxParallel: 1}, plan, agents, retry)
		d.SetFacts(0, schedule.RunFacts{Made: true, Attempt: 1, State: agency.Running, Ran: true, SignalAt: now, Turn: test.turn, LimitedAt: now, ResetAt: reset})
		clock := schedule.Clock{Now: test.at, Elapsed: func(since time.Time) time.Duration { return test.at.Sub(since) }}
		holds := map[string]time.Time{}
		d.AddRateLimits(clock, holds)
		actions, _ := schedule.Decide(d, clock, holds)
		var got []schedule.ActionKind
		for _, x := range actions {
			got = append(got, x.Kind)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}
