package daemon

import (
	"sync"
	"time"
)

const (
	// leap is how far the system's clock must be from where it should be to have been set, or to have slept.
	leap = 2 * time.Second
	// mostAhead is how far the daemon's clock may be ahead of the system's. One that was wrong by more is not worth keeping up.
	mostAhead = 24 * time.Hour
	// mostLeaps is how many leaps are remembered.
	mostLeaps = 64
)

// clock is the time as the daemon tells it: the system's clock, which anybody may set at any moment, without the harm. It
// never runs backwards: when the system's clock is set back it goes on at half the speed until that has caught up, so
// that what is recorded later also has a later time. When the system's clock is set forward, or the machine slept, it
// follows at once, and Elapsed leaves that time out.
type clock struct {
	wall   func() time.Time     // the system's clock
	steady func() time.Duration // passes evenly while the machine is awake, whatever happens to the system's clock

	mu    sync.Mutex
	told  time.Time     // the newest answer
	at    time.Duration // on steady when it was told
	leaps []leapOf
}

// leapOf is a part of the time that did not pass.
type leapOf struct {
	from time.Time
	by   time.Duration
}

// newClock makes a clock that begins with the system's.
func newClock(wall func() time.Time, steady func() time.Duration) *clock {
	return &clock{wall: wall, steady: steady, told: wall().Round(0), at: steady()}
}

// begin sets the clock to the time of what an earlier daemon recorded last, if that is ahead, but by no more than a day.
func (c *clock) begin(newest time.Time) {
	now := c.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if ahead := newest.Sub(now); ahead > 0 && ahead <= mostAhead {
		c.told = newest
	}
}

// Now is the time. Two answers are in order; they may be the same.
func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	wall, steady := c.wall().Round(0), c.steady()
	passed := steady - c.at
	c.at = steady
	due := c.told.Add(passed)
	switch off := wall.Sub(due); {
	case off > leap:
		c.leaps = append(c.leaps[max(0, len(c.leaps)+1-mostLeaps):], leapOf{from: due, by: off})
		c.told = wall
	case off >= 0, off < -mostAhead:
		c.told = wall
	default:
		if slow := c.told.Add(passed / 2); slow.After(wall) {
			c.told = slow
		} else {
			c.told = wall
		}
	}
	return c.told
}

// Elapsed is how much time has passed since then, without the leaps of the system's clock. It is never negative. What
// happened between two daemons is not known: that time is taken as the system's clock tells it.
func (c *clock) Elapsed(since time.Time) time.Duration {
	passed := c.Now().Sub(since)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.leaps {
		if !since.After(l.from) {
			passed -= l.by
		}
	}
	return max(passed, 0)
}
