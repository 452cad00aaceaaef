package scheduler

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"agency/internal/schedule"
)

// The words in which the agents' providers say until when they take no work. Anything else is unknown.
var (
	resetAfter = regexp.MustCompile(`(?i)\b(?:retry|try again|resets?|available)\s+(?:after|in)\s+(\d{1,6})\s*(ms|s|sec|secs|seconds?|m|min|mins|minutes?|h|hours?)\b`)
	resetUnix  = regexp.MustCompile(`\|(\d{10})\b`)
	resetClock = regexp.MustCompile(`(?i)\bresets?\s+(?:at\s+)?(\d{1,2})(?::(\d{2}))?\s*(am|pm)?\b`)
)

// justReset is how long ago an hour of the clock may be that a refusal still means. A refusal is seen later than it was made, and what
// is tried again at that very hour may come too early by the clock of the provider.
const justReset = 10 * time.Minute

// resetIn is when a rate limit ends by the words of the refusal; zero is unknown. The words may be an agent's own, so that no more than
// agency.LongestHold is believed; what is limited for longer is tried again.
func resetIn(text string, at time.Time) time.Time {
	var until time.Time
	if m := resetUnix.FindStringSubmatch(text); m != nil {
		seconds, _ := strconv.ParseInt(m[1], 10, 64)
		until = time.Unix(seconds, 0)
	} else if m := resetAfter.FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1])
		unit := time.Second
		switch word := strings.ToLower(m[2]); {
		case word == "ms":
			unit = time.Millisecond
		case word[0] == 'm':
			unit = time.Minute
		case word[0] == 'h':
			unit = time.Hour
		}
		until = at.Add(time.Duration(n) * unit)
	} else if m := resetClock.FindStringSubmatch(text); m != nil {
		until = nextClock(m[1], m[2], strings.ToLower(m[3]), at)
	}
	if !until.After(at) || until.Sub(at) > schedule.LongestHold {
		return time.Time{}
	}
	return until
}

// nextClock is the next time that a clock on the wall shows an hour; zero for what is none, and for an hour that has just been.
func nextClock(hour, minute, half string, at time.Time) time.Time {
	h, _ := strconv.Atoi(hour)
	m, _ := strconv.Atoi(minute)
	switch {
	case half != "" && (h < 1 || h > 12), h > 23, m > 59, half == "" && minute == "":
		return time.Time{}
	case half == "pm" && h < 12:
		h += 12
	case half == "am" && h == 12:
		h = 0
	}
	at = at.Local()
	next := time.Date(at.Year(), at.Month(), at.Day(), h, m, 0, 0, at.Location())
	if !next.After(at) {
		next = next.AddDate(0, 0, 1)
	}
	if at.Sub(next.AddDate(0, 0, -1)) <= justReset {
		return time.Time{}
	}
	return next
}
