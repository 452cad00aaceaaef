package modelserver

import (
	"net/http"
	"strconv"
	"time"
)

// Failure describes a turn with an error status.
type Failure struct {
	Message string // if empty, a default text
	// Times is the number of errors before the answer; 0 is without end.
	Times int
	// RetryAfter is the time after which the client is asked to try again, in whole seconds; 0
	// leaves it to the client.
	RetryAfter time.Duration
}

// fails reports whether a turn is refused once more, and counts it.
func (s *Server) fails(turn int, f Failure) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed[turn]++
	return f.Times == 0 || s.failed[turn] <= f.Times
}

func (f Failure) announce(w http.ResponseWriter) {
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(f.RetryAfter.Seconds())))
	}
}
