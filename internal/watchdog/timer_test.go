package watchdog_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agency"
	"agency/internal/watchdog"
)

// clockwork is one run, a store of timers in memory, and the texts that were typed.
type clockwork struct {
	t     *testing.T
	mu    sync.Mutex
	slept time.Duration // how long the machine has slept, which only the clock counts

	run    agency.Run
	label  agency.Label
	err    error // of the next sends
	gone   bool
	holds  bool // a restart holds the run
	typed  []string
	kept   []agency.Timer
	seq    int64
	timers *watchdog.Timers
}

func newClockwork(t *testing.T) *clockwork {
	c := &clockwork{t: t, run: agency.Run{ID: "r_boss", Name: "boss", Attempt: agency.Attempt{Number: 1, State: agency.Running}}, label: agency.Waiting}
	t.Cleanup(func() { c.timers.Stop() })
	c.start()
	return c
}

func (c *clockwork) start() {
	c.timers = watchdog.NewTimers(c, c, slog.New(slog.DiscardHandler), c.now)
	if err := c.timers.Start(context.Background()); err != nil {
		c.t.Fatal(err)
	}
}

func (c *clockwork) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.slept)
}

func (c *clockwork) set(name, message string, interval time.Duration) {
	c.t.Helper()
	_, err := c.timers.Set(context.Background(), &agency.Timer{Name: name, RunID: "r_boss", Owner: agency.User, Message: message, Interval: interval})
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *clockwork) do(edit func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	edit()
}

// first returns the first of the stored timers.
func (c *clockwork) first() agency.Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kept[0]
}

func (c *clockwork) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (c *clockwork) want(typed ...string) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Equal(c.typed, typed) {
		c.t.Errorf("typed %q, want %q", c.typed, typed)
	}
}

func (c *clockwork) Worker(context.Context, agency.RunID) (*watchdog.Worker, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	run := c.run
	if c.gone {
		run.RemovedAt = new(time.Now())
	}
	return &watchdog.Worker{Run: &run, Status: agency.Status{Label: c.label}}, nil
}

func (c *clockwork) Restarting(context.Context, agency.RunID) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.holds, nil
}

func (c *clockwork) Send(_ context.Context, _ agency.RunID, text string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.typed = append(c.typed, text)
	}
	return c.err
}

func (c *clockwork) Timers(context.Context) ([]agency.Timer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.kept), nil
}

func (c *clockwork) PutTimer(_ context.Context, t *agency.Timer) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := len(c.kept)
	c.kept = slices.DeleteFunc(c.kept, func(o agency.Timer) bool { return o.Name == t.Name })
	replaced := len(c.kept) < before
	c.seq++
	t.Seq = c.seq
	c.kept = append(c.kept, *t)
	return replaced, nil
}

func (c *clockwork) ChangeTimer(_ context.Context, seq int64, change func(*agency.Timer)) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.kept, func(o agency.Timer) bool { return o.Seq == seq })
	if i >= 0 {
		change(&c.kept[i])
	}
	return i >= 0, nil
}

func (c *clockwork) DeleteTimer(_ context.Context, t *agency.Timer) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = slices.DeleteFunc(c.kept, func(o agency.Timer) bool { return o.Seq == t.Seq })
	return nil
}

// The first tick comes after one interval, and then one after each.
func TestTimerTicks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClockwork(t)
		c.set("boss", "check", 30*time.Second)
		c.pass(30*time.Second - time.Nanosecond)
		c.want()
		c.pass(time.Nanosecond)
		c.want("check")
		c.pass(time.Minute)
		c.want("check", "check", "check")
		if k := c.first(); k.Ticks != 3 || k.Sent != 3 || k.Outcome != "sent" || !k.TickedAt.Equal(time.Now()) {
			t.Errorf("kept %+v", k)
		}
	})
}

// A timer does not write while the agent works or asks, or the user types; each tick is counted
// with its reason.
func TestTimerSkips(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		set  func(c *clockwork)
		why  string
		fail bool
	}{
		"at work":         {set: func(c *clockwork) { c.label = agency.Working }, why: "it is working"},
		"a question":      {set: func(c *clockwork) { c.label = agency.NeedsInput }, why: "it is needs input"},
		"blocked":         {set: func(c *clockwork) { c.label = agency.Blocked }, why: "it is blocked"},
		"a request":       {set: func(c *clockwork) { c.run.Attempt.AgentState.Requests = []agency.Request{{ID: "1"}} }, why: "it asks for something"},
		"background work": {set: func(c *clockwork) { c.run.Attempt.AgentState.Background = 1 }, why: "it has work in the background"},
		"a model that refuses": {
			set: func(c *clockwork) {
				c.run.Attempt.AgentState.Failure = &agency.AgentError{Class: agency.ErrorRateLimit}
			},
			why: "its model failed: rate limit",
		},
		"a user types":   {set: func(c *clockwork) { c.err = agency.Errorf(agency.CodeInputRefused, "the user is typing") }, why: "the user is typing"},
		"a closed input": {set: func(c *clockwork) { c.err = agency.Errorf(agency.CodeInvalidState, "its input is closed") }, why: "its input is closed", fail: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newClockwork(t)
				tt.set(c)
				c.set("boss", "check", time.Minute)
				c.pass(5 * time.Minute)
				c.want()
				k := c.first()
				if k.Outcome != tt.why || k.Ticks != 5 || k.Sent != 0 || k.Failed == 5 != tt.fail || k.Skipped == 5 == tt.fail {
					t.Errorf("kept %+v", k)
				}
			})
		})
	}
}

// Setting a name again replaces the timer; the old one stops.
func TestTimerReplaced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClockwork(t)
		c.set("boss", "old", 10*time.Second)
		c.set("other", "other", 25*time.Second)
		c.pass(9 * time.Second)
		c.set("boss", "new", 20*time.Second)
		c.pass(20 * time.Second)
		c.want("other", "new")
		ended, err := c.timers.End(t.Context(), func(timer *agency.Timer) bool { return timer.Name == "boss" })
		if err != nil || !slices.Equal(ended, []string{"boss"}) {
			t.Errorf("ended %q, %v", ended, err)
		}
		c.pass(time.Minute)
		c.want("other", "new", "other", "other")
	})
}

// A timer continues after a restart: the ticks that were missed count as one.
func TestTimerRestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClockwork(t)
		c.set("boss", "check", time.Minute)
		c.pass(30 * time.Second)
		c.timers.Stop()
		c.start()
		c.pass(30*time.Second - time.Nanosecond)
		c.want()
		c.pass(time.Nanosecond)
		c.want("check")
		c.timers.Stop()
		c.pass(10 * time.Minute)
		c.start()
		c.pass(0)
		c.want("check", "check")
		c.pass(time.Minute)
		c.want("check", "check", "check")
		c.timers.Stop()
		c.kept[0].NextAt = time.Now().Add(24 * time.Hour) // the clock was a day ahead
		c.start()
		c.pass(time.Minute)
		c.want("check", "check", "check", "check")
	})
}

// A timer that became due while the machine slept ticks once, at most a minute after that.
func TestTimerAfterSleep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClockwork(t)
		c.set("boss", "check", time.Hour)
		c.pass(10 * time.Minute)
		c.do(func() { c.slept = 8 * time.Hour })
		c.pass(time.Minute)
		c.want("check")
		c.pass(time.Hour - 2*time.Minute)
		c.want("check")
		c.pass(2 * time.Minute)
		c.want("check", "check")
	})
}

// A run that ended or was removed ends its timers, and the reason is kept.
func TestTimerEnds(t *testing.T) {
	t.Parallel()
	for why, end := range map[string]func(c *clockwork){
		"its run is failed":   func(c *clockwork) { c.run.Attempt.State = agency.Failed },
		"its run was removed": func(c *clockwork) { c.gone = true },
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newClockwork(t)
			c.set("boss", "check", time.Minute)
			c.do(func() { end(c) })
			c.pass(time.Hour)
			c.want()
			if k := c.first(); k.StoppedAt == nil || k.StopReason != why || k.Ticks != 0 {
				t.Errorf("kept %+v", k)
			}
			c.do(func() { c.gone, c.run.Attempt.State = false, agency.Running })
			c.timers.Stop()
			c.start()
			c.pass(time.Hour)
			c.want() // it has ended
		})
	}
}

// Between two attempts of a restarted run a timer waits, however long the restart takes; without
// another attempt it ends as usual.
func TestTimerOfRestartedRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClockwork(t)
		c.set("boss", "check", 10*time.Second)
		stop := func() {
			c.do(func() {
				a := &c.run.Attempt
				a.State, a.Restarting, a.EndedAt = agency.Killed, true, new(time.Now())
			})
		}
		c.pass(9 * time.Second)
		stop()
		c.pass(time.Second)
		c.want()
		if k := c.first(); k.StoppedAt != nil || k.Skipped != 1 || k.Outcome != "it is being restarted" {
			t.Errorf("kept %+v", k)
		}
		c.do(func() { c.holds = true })
		c.pass(time.Hour)
		c.do(func() { c.holds, c.run.Attempt = false, agency.Attempt{Number: 2, State: agency.Running} })
		c.pass(10 * time.Second)
		c.want("check")
		stop()
		c.pass(time.Minute)
		c.want("check")
		if k := c.first(); k.StopReason != "its run is stopped" || k.Skipped != 363 {
			t.Errorf("kept %+v", k)
		}
	})
}

// A timer may write to a run that rests or offers its work, and in no other status.
func TestBusy(t *testing.T) {
	t.Parallel()
	for _, label := range agency.Labels() {
		idle := label == agency.Waiting || label == agency.ReadyForReview
		if why := watchdog.Busy(&agency.Run{}, agency.Status{Label: label}); (why == "") != idle {
			t.Errorf("%s: %q", label, why)
		}
		asks := agency.Status{Label: label, Request: &agency.Request{ID: "1"}}
		if watchdog.Busy(&agency.Run{}, asks) == "" {
			t.Errorf("%s with a request is idle", label)
		}
	}
}
