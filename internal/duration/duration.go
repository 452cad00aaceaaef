// Package duration formats durations for users, and parses those that they write.
package duration

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Day is 24 hours, also when the clocks change.
const Day = 24 * time.Hour

// Short formats a duration in its largest unit, as in a table: 45s, 5m, 2h, 2h5m, 3d. A negative
// one is 0s.
func Short(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < Day:
		if m := int(d.Minutes()) % 60; m != 0 {
			return fmt.Sprintf("%dh%dm", int(d.Hours()), m)
		}
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours())/24)
	}
}

// Stopwatch formats a running duration in its two largest units: 45s, 5m03s, 2h05m, 3d01h. A
// negative one is 0s.
func Stopwatch(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < Day:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
	}
}

// Exact formats a duration exactly, without trailing zero units, as the configuration has it: 90m
// is 1h30m, a day 24h.
func Exact(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// Text formats a duration as Parse reads it: Exact, but whole days as 7d.
func Text(d time.Duration) string {
	if d != 0 && d%Day == 0 {
		return fmt.Sprintf("%dd", d/Day)
	}
	return Exact(d)
}

// Parse parses a duration that is not negative. Days come first: 7d, 1d12h, 30m.
func Parse(text string) (time.Duration, error) {
	const most = 100_000 // days
	whole, rest := time.Duration(0), text
	if days, after, ok := strings.Cut(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 32)
		if err != nil || n > most {
			return 0, fmt.Errorf("%q is not a number of days", days)
		}
		if whole, rest = time.Duration(n)*Day, after; rest == "" {
			return whole, nil
		}
	}
	d, err := time.ParseDuration(rest)
	if err == nil && (d < 0 || whole+d < 0 || whole > 0 && d >= Day) {
		err = fmt.Errorf("%q is not a duration", text)
	}
	return whole + d, err
}
