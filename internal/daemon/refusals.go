package daemon

import (
	"log/slog"
	"sync"
	"time"
)

// refusalEvery is the shortest time between two log lines about refused wrappers.
const refusalEvery = time.Minute

// refusals logs refused wrappers: the first at once, then how many there were since.
type refusals struct {
	mu       sync.Mutex
	loggedAt time.Time
	more     int
}

func (r *refusals) warn(log *slog.Logger, now time.Time, text string, attrs ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.loggedAt.IsZero() && now.Sub(r.loggedAt) < refusalEvery {
		r.more++
		return
	}
	if r.more > 0 {
		attrs = append(attrs, "not_logged", r.more)
	}
	log.Warn(text, attrs...)
	r.loggedAt, r.more = now, 0
}
