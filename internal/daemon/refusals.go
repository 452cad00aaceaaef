package daemon

import (
	"log/slog"
	"sync"
	"time"
)

// refusalEvery is how often a refused wrapper is written into the log.
const refusalEvery = time.Minute

// refusals writes down that wrappers are refused: the first at once, and then how many there were since.
type refusals struct {
	mu   sync.Mutex
	told time.Time
	more int
}

func (r *refusals) warn(log *slog.Logger, now time.Time, text string, attrs ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.told.IsZero() && now.Sub(r.told) < refusalEvery {
		r.more++
		return
	}
	if r.more > 0 {
		attrs = append(attrs, "not_told", r.more)
	}
	log.Warn(text, attrs...)
	r.told, r.more = now, 0
}
