package view

import (
	"time"

	"agency/internal/duration"
)

// Age returns how long ago something was, in words that change no oftener than once a minute, so
// that an idle list writes nothing.
func Age(d time.Duration) string {
	if d < time.Minute {
		return "now"
	}
	return duration.Short(d)
}
