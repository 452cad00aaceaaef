package modelserver

import (
	"net/http"
	"strconv"
	"time"
)

// Failure says more about a turn that has an error status.
type Failure struct {
	Message string // empty is some text
	// Times is how often the error is sent before the answer; 0 is for ever.
	Times int
	// RetryAfter is when the client is told to try again, in whole seconds; 0 leaves it to the client.
	RetryAfter time.Duration
}

// fails says whether a turn is refused once more, and counts it.
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
