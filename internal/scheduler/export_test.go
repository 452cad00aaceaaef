package scheduler

import (
	"context"
	"time"
)

// These are the actions that an external executor can report of an agent.
var (
	ReportStart  = start
	ReportFail   = fail
	ReportCancel = cancel
)

// PassEvery is the time between two looks at what changed.
const PassEvery = passEvery

// Pass writes the files that are due, waits for that, and returns when to come again.
func (f *Files) Pass(ctx context.Context) time.Time {
	next := f.pass(ctx, false)
	f.workers.Wait()
	return next
}

// Waiting returns how many starts wait for their turn.
func (s *Scheduler) Waiting() int {
	s.starts.mu.Lock()
	defer s.starts.mu.Unlock()
	n := 0
	for _, queue := range s.starts.queues {
		n += len(queue)
	}
	return n
}
