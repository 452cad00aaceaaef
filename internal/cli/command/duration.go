package command

import (
	"time"

	"github.com/spf13/pflag"

	"agency/internal/duration"
)

// durationValue is the value of a flag: a length of time as people write it, 90s, 30m, 2h or 7d, and never less than none.
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

// String implements pflag.Value. None at all is the empty text: help shows no default then.
func (d *durationValue) String() string {
	if *d == 0 {
		return ""
	}
	return duration.Text(time.Duration(*d))
}

// Type implements pflag.Value.
func (d *durationValue) Type() string { return "duration" }

// Milliseconds is a length of time for a request. However short, it is not 0, which is no limit or no wait at all.
func Milliseconds(d time.Duration) int64 {
	if d > 0 {
		return max(1, d.Milliseconds())
	}
	return 0
}
