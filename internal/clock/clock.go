// Package clock provides the daemon's time, which never runs backwards and accounts for leaps of
// the system's clock.
package clock

import (
	"sync"
	"time"
)

const (
	// minLeap is the smallest difference from the expected time that counts as a leap: the clock
	// was set, or the machine slept.
	minLeap = 2 * time.Second
	// maxAhead is how far a Clock may be ahead of the system's clock. When it is further ahead, its
	// time was wrong, and it jumps to the system's time.
	maxAhead = 24 * time.Hour
	// maxLeaps is how many leaps a Clock remembers. The oldest of them includes those before it.
	maxLeaps = 64
)

// Clock returns the time of the system's clock, which any user or program may set at any moment, in
// order. When the system's clock is set back, a Clock runs at half speed until the system's clock
// has caught up, so that later records have later times. When the system's clock is set forward, or
// the machine slept, a Clock follows at once, and Elapsed leaves that time out. All methods may be
// called from several goroutines.
type Clock struct {
	wall   func() time.Time     // the system's clock
	steady func() time.Duration // runs evenly while the machine is awake, and is independent of the system's clock

	mu    sync.Mutex
	last  time.Time     // the newest time that Now returned
	at    time.Duration // the value of steady for last
	leaps []leap
}

// leap is a time that the clock skipped.
type leap struct {
	from time.Time
	by   time.Duration
}

// New returns a clock that begins with the time of wall, the system's clock. steady returns the
// time since a fixed moment.
func New(wall func() time.Time, steady func() time.Duration) *Clock {
	return &Clock{wall: wall, steady: steady, last: wall().Round(0), at: steady()}
}

// Begin sets the clock to newest, the last time that an earlier daemon recorded, if that is ahead
// by no more than a day.
func (c *Clock) Begin(newest time.Time) {
	now := c.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if ahead := newest.Sub(now); ahead > 0 && ahead <= maxAhead {
		c.last = newest
	}
}

// Now returns the time. It is never before the time of an earlier call, but may be equal; only a
// clock more than maxAhead ahead jumps back.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, _ := c.read()
	return now
}

// Convert returns the time at which this clock stood, or would have stood, at a time of the system's
// clock, as far as that has not been set since. Other processes and files have times of the system's
// clock, and must not seem old or early while this clock is ahead. The result is never after Now.
func (c *Clock) Convert(at time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, wall := c.read()
	if at = at.Add(now.Sub(wall)); at.After(now) {
		return now
	}
	return at
}

// read returns the time of this clock and of the system's; the caller holds the lock.
func (c *Clock) read() (now, wall time.Time) {
	wall = c.wall().Round(0)
	steady := c.steady()
	passed := steady - c.at
	c.at = steady
	due := c.last.Add(passed)
	switch off := wall.Sub(due); {
	case off > minLeap:
		c.leaps = append(c.leaps, leap{from: due, by: off})
		if len(c.leaps) > maxLeaps {
			c.leaps[1].by += c.leaps[0].by
			c.leaps = c.leaps[1:]
		}
		c.last = wall
	case off >= 0, off < -maxAhead:
		c.last = wall
	default:
		if slow := c.last.Add(passed / 2); slow.After(wall) {
			c.last = slow
		} else {
			c.last = wall
		}
	}
	return c.last, wall
}

// Elapsed returns how much time has passed since a time, without the leaps of the system's clock.
// It is never negative. Leaps between two daemons are unknown: for that time Elapsed trusts the
// system's clock.
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
