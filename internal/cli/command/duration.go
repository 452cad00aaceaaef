package command

import (
	"time"

	"github.com/spf13/pflag"

	"agency/internal/duration"
)

// durationValue is the value of a flag: a duration such as 90s, 30m, 2h or 7d, never negative.
type durationValue time.Duration

// DurationVar defines a flag that takes a duration.
func DurationVar(f *pflag.FlagSet, d *time.Duration, name string, unless time.Duration, usage string) {
	*d = unless
	f.Var((*durationValue)(d), name, usage)
}

// Set implements pflag.Value.
func (d *durationValue) Set(text string) error {
	parsed, err := duration.Parse(text)
	if err == nil {
		*d = durationValue(parsed)
	}
	return err
}

// String implements pflag.Value. Zero is the empty text: help shows no default then.
func (d *durationValue) String() string {
	if *d == 0 {
		return ""
	}
	return duration.Text(time.Duration(*d))
}

// Type implements pflag.Value.
func (d *durationValue) Type() string { return "duration" }

// Milliseconds returns a duration for a request. A short one does not become 0, which means no
// limit or no wait.
func Milliseconds(d time.Duration) int64 {
	if d > 0 {
		return max(1, d.Milliseconds())
	}
	return 0
}
