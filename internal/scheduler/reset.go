package scheduler

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"agency/internal/schedule"
)

// The phrases in which providers say until when they accept no work. Any other phrase means
// unknown.
var (
	resetAfter = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)\b(?:retry|try again|resets?|available)\s+(?:after|in)\s+(\d{1,6})\s*(ms|s|sec|secs|seconds?|m|min|mins|minutes?|h|hours?)\b`)
	})
	resetUnix  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\|(\d{10})\b`) })
	resetClock = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)\bresets?\s+(?:at\s+)?(\d{1,2})(?::(\d{2}))?\s*(am|pm)?\b`)
	})
)

// justReset is how far in the past a time of day may be for a refusal to still mean it. A refusal
// is seen later than it was made, and a retry at exactly that time may come too early by the
// provider's clock.
const justReset = 10 * time.Minute

// resetIn returns when a rate limit ends according to the text of the refusal; zero is unknown. The
// text may be an agent's own, so the result is at most agency.LongestHold ahead; after that, an
// agent with a longer limit is tried again.
func resetIn(text string, at time.Time) time.Time {
	var until time.Time
	if m := resetUnix().FindStringSubmatch(text); m != nil {
		seconds, _ := strconv.ParseInt(m[1], 10, 64)
		until = time.Unix(seconds, 0)
	} else if m := resetAfter().FindStringSubmatch(text); m != nil {
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
	} else if m := resetClock().FindStringSubmatch(text); m != nil {
		until = nextClock(m[1], m[2], strings.ToLower(m[3]), at)
	}
	if !until.After(at) || until.Sub(at) > schedule.LongestHold {
		return time.Time{}
	}
	return until
}

// nextClock returns the next time at which a clock shows a time of day; zero for an invalid one,
// and for one that has just passed.
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
