package view

import (
	"time"

	"agency/internal/duration"
)

// Age returns how long ago something was, in words. They change at most once a minute, so that an idle list
// is not drawn again.
func Age(d time.Duration) string {
	if d < time.Minute {
		return "now"
	}
	return duration.Short(d)
}
