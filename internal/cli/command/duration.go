package command

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// Day is 24 hours, whatever the clock says.
const Day = 24 * time.Hour

// duration is the value of a flag: a length of time as people write it, 90s, 30m, 2h or 7d, and never less than none.
type duration time.Duration

// DurationVar defines a flag that takes a duration.
func DurationVar(f *pflag.FlagSet, d *time.Duration, name string, unless time.Duration, usage string) {
	*d = unless
	f.Var((*duration)(d), name, usage)
}

// Set implements pflag.Value.
func (d *duration) Set(text string) error {
	parsed, err := ParseDuration(text)
	if err == nil {
		*d = duration(parsed)
	}
	return err
}

// String implements pflag.Value. None at all is the empty text: help shows no default then.
func (d *duration) String() string {
	if *d == 0 {
		return ""
	}
	return DurationText(time.Duration(*d))
}

// Type implements pflag.Value.
func (d *duration) Type() string { return "duration" }

// ParseDuration reads a length of time. Days come first: 7d, 1d12h, 30m.
func ParseDuration(text string) (time.Duration, error) {
	const most = 100_000 // days
	whole, rest := time.Duration(0), text
	if days, after, ok := strings.Cut(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 32)
		if err != nil || n > most {
			return 0, fmt.Errorf("%q is no number of days", days)
		}
		if whole, rest = time.Duration(n)*Day, after; rest == "" {
			return whole, nil
		}
	}
	d, err := time.ParseDuration(rest)
	if err == nil && (d < 0 || whole+d < 0 || whole > 0 && d >= Day) {
		err = fmt.Errorf("%q is no length of time", text)
	}
	return whole + d, err
}

// Milliseconds is a length of time for a request. However short, it is not 0, which is no limit or no wait at all.
func Milliseconds(d time.Duration) int64 {
	if d > 0 {
		return max(1, d.Milliseconds())
	}
	return 0
}

// DurationText writes a length of time as ParseDuration reads it.
func DurationText(d time.Duration) string {
	if d != 0 && d%Day == 0 {
		return fmt.Sprintf("%dd", d/Day)
	}
	text := d.String()
	for _, none := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, none) {
			text = text[:len(text)-2]
		}
	}
	return text
}
