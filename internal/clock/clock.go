// Package clock tells the daemon's time, which never runs backwards and knows when the system's clock leapt.
package clock

import (
	"sync"
	"time"
)

const (
	// minLeap is the smallest difference from the time that is due that counts as a leap: the clock was set, or the machine
	// slept.
	minLeap = 2 * time.Second
	// maxAhead is how far a Clock may be ahead of the system's clock. One that was wrong by more is not worth following.
	maxAhead = 24 * time.Hour
	// maxLeaps is how many leaps a Clock remembers.
	maxLeaps = 64
)

// Clock tells the time of the system's clock, which any user or program may set at any moment, in order. When the
// system's clock is set back, a Clock goes on at half the speed until that has caught up, so that what is recorded later
// also has a later time. When the system's clock is set forward, or the machine slept, a Clock follows at once, and
// Elapsed leaves that time out. All methods may be called from several goroutines.
type Clock struct {
	wall   func() time.Time     // the system's clock
	steady func() time.Duration // passes evenly while the machine is awake, whatever happens to the system's clock

	mu    sync.Mutex
	told  time.Time     // the newest answer
	at    time.Duration // on steady, when told was answered
	leaps []leap
}

// leap is a part of the time that did not pass.
type leap struct {
	from time.Time
	by   time.Duration
}

// New returns a clock that begins with the time of wall, the system's clock. steady returns the time since a fixed moment.
func New(wall func() time.Time, steady func() time.Duration) *Clock {
	return &Clock{wall: wall, steady: steady, told: wall().Round(0), at: steady()}
}

// Begin sets the clock to newest, the time of what an earlier daemon recorded last, if that is ahead by no more than a day.
func (c *Clock) Begin(newest time.Time) {
	now := c.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if ahead := newest.Sub(now); ahead > 0 && ahead <= maxAhead {
		c.told = newest
	}
}

// Now returns the time. A later answer is never before an earlier one; both may be the same.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	wall, steady := c.wall().Round(0), c.steady()
	passed := steady - c.at
	c.at = steady
	due := c.told.Add(passed)
	switch off := wall.Sub(due); {
	case off > minLeap:
		c.leaps = append(c.leaps[max(0, len(c.leaps)+1-maxLeaps):], leap{from: due, by: off})
		c.told = wall
	case off >= 0, off < -maxAhead:
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

// Elapsed returns how much time has passed since then, without the leaps of the system's clock. It is never negative. What
// happened between two daemons is not known: Elapsed takes that time as the system's clock tells it.
func (c *Clock) Elapsed(since time.Time) time.Duration {
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
