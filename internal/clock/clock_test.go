package clock

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// hands let a test move a clock.
type hands struct {
	wall   time.Time
	steady time.Duration
	clock  *Clock
}

func newHands() *hands {
	h := &hands{wall: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)}
	h.clock = New(func() time.Time { return h.wall }, func() time.Duration { return h.steady })
	return h
}

func (h *hands) pass(d time.Duration) { h.wall, h.steady = h.wall.Add(d), h.steady+d }

// The clock follows the system's clock, slows down when that is set back, and then follows it
// again.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	h := newHands()
	before := h.clock.Now()
	h.wall = h.wall.Add(-time.Hour)
	if now := h.clock.Now(); !now.Equal(before) {
		t.Errorf("it moved by %v", now.Sub(before))
	}
	h.pass(20 * time.Minute)
	if now := h.clock.Now(); !now.Equal(before.Add(10 * time.Minute)) {
		t.Errorf("after 20 minutes it is %v on", now.Sub(before))
	}
	h.pass(2 * time.Hour)
	if now := h.clock.Now(); !now.Equal(h.wall) {
		t.Errorf("it is off by %v", now.Sub(h.wall))
	}
	h.wall = h.wall.Add(-48 * time.Hour)
	if now := h.clock.Now(); !now.Equal(h.wall) {
		t.Errorf("it is off by %v where the system's was wrong by days", now.Sub(h.wall))
	}
}

// A time that another process took keeps its age, also when the system's clock was set back before or
// after that.
func TestClockConverts(t *testing.T) {
	t.Parallel()
	h := newHands()
	before := h.wall
	age := func(at time.Time, want time.Duration) {
		t.Helper()
		if got := h.clock.Now().Sub(h.clock.Convert(at)); got != want {
			t.Errorf("it is %v old, want %v", got, want)
		}
	}
	h.pass(5 * time.Second)
	age(before, 5*time.Second)
	age(h.wall.Add(time.Second), 0)
	h.wall = h.wall.Add(-time.Hour)
	age(before, 0)
	after := h.wall
	age(after, 0)
	h.pass(20 * time.Minute)
	age(after, 20*time.Minute)
	h.pass(2 * time.Hour)
	age(after, 140*time.Minute)
}

// However often the machine slept, none of that time has elapsed.
func TestClockSleepsOften(t *testing.T) {
	t.Parallel()
	h := newHands()
	begun := h.clock.Now()
	for night := range 3 * maxLeaps {
		h.wall = h.wall.Add(8 * time.Hour)
		h.clock.Now()
		h.pass(time.Hour)
		if got, want := h.clock.Elapsed(begun), time.Duration(night+1)*time.Hour; got != want {
			t.Fatalf("after %d nights %v have passed, want %v", night+1, got, want)
		}
	}
	if len(h.clock.leaps) != maxLeaps {
		t.Errorf("it remembers %d leaps", len(h.clock.leaps))
	}
}

// Times from the next daemon are later than times from the last one.
func TestClockBegins(t *testing.T) {
	t.Parallel()
	for ahead, want := range map[time.Duration]time.Duration{-time.Hour: 0, 0: 0, time.Hour: time.Hour, 25 * time.Hour: 0} {
		h := newHands()
		h.clock.Begin(h.wall.Add(ahead))
		if got := h.clock.Now().Sub(h.wall); got != want {
			t.Errorf("%v ahead: it is %v ahead, want %v", ahead, got, want)
		}
	}
}

// When the system's clock is set by less than a day, time never runs backwards, and an hour of it
// does not become a second.
func TestClockIsSetAround(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := newHands()
		since := h.clock.Now()
		last, passed, ahead := since, time.Duration(0), time.Duration(0)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "set") {
				by := time.Duration(rapid.IntRange(-3600, 3600).Draw(t, "by")) * time.Second
				if ahead-by > maxAhead {
					continue
				}
				h.wall = h.wall.Add(by)
			}
			step := time.Duration(rapid.IntRange(0, 60_000).Draw(t, "step")) * time.Millisecond
			h.pass(step)
			passed += step
			now := h.clock.Now()
			if now.Before(last) {
				t.Fatalf("it ran back by %v", last.Sub(now))
			}
			last, ahead = now, now.Sub(h.wall)
			if ahead < 0 {
				t.Fatalf("it is %v behind", -ahead)
			}
			// A jump of less than two seconds counts as drift.
			if got := h.clock.Elapsed(since); got < 0 || got > passed+40*minLeap {
				t.Fatalf("%v passed, and it says %v", passed, got)
			}
		}
	})
}
