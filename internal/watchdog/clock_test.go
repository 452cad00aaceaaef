package watchdog_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agency"
)

// A snoozed alert opens again when its time is over, and not before.
func TestSnooze(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		worker := w.add("a")
		w.change(worker, func() { asks(&worker.run, "Which?") })
		w.act(0, func(a *agency.Alert) { a.SnoozedUntil = new(time.Now().Add(2 * time.Hour)) })
		w.pass(2*time.Hour - time.Nanosecond)
		if len(w.notifications()) != 1 {
			t.Errorf("notified %q", w.notifications())
		}
		w.pass(time.Nanosecond)
		if len(w.notifications()) != 2 {
			t.Errorf("notified %q", w.notifications())
		}
	})
}

// A snooze counts even at the very moment of a notification.
func TestSnoozeDuringNotification(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		worker := w.add("a")
		w.change(worker, func() { asks(&worker.run, "Which?") })
		w.act(0, func(a *agency.Alert) { a.SnoozedUntil = new(time.Now().Add(time.Hour)) })
		snoozed := false
		w.mu.Lock()
		w.notifying = func() {
			if !snoozed {
				snoozed = true
				w.mu.Lock()
				w.alerts[0].SnoozedUntil = new(time.Now().Add(8 * time.Hour))
				w.mu.Unlock()
			}
		}
		w.mu.Unlock()
		w.pass(9*time.Hour - time.Second)
		w.wantNotified("a worker.needs_input 0", "a worker.needs_input 1")
		w.pass(time.Second)
		w.wantNotified("a worker.needs_input 0", "a worker.needs_input 1", "a worker.needs_input 2")
	})
}

// Alerts that a clock far ahead notified, snoozed or measured do not wait until the real time has
// caught up.
func TestClockWasAhead(t *testing.T) {
	t.Parallel()
	for _, restarts := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			asking, working := w.add("asking"), w.add("working")
			w.change(asking, func() { asks(&asking.run, "Which?") })
			w.ahead.Store(int64(365 * 24 * time.Hour))
			w.change(working, func() { working.output = w.now() })
			w.pass(time.Minute)
			notified := len(w.notifications())
			w.ahead.Store(0)
			if restarts {
				w.restart()
			}
			w.pass(time.Hour - time.Minute)
			want := []string{"asking worker.needs_input 2", "working worker.stuck 0", "working worker.stuck 1", "working worker.stuck 2"}
			got := w.notifications()[notified:]
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("restarts: %v, notified %q, want %q", restarts, got, want)
			}
		})
	}
}
