package scheduler

// Waiting is how many starts wait for their turn.
func (s *Scheduler) Waiting() int {
	s.starts.mu.Lock()
	defer s.starts.mu.Unlock()
	n := 0
	for _, queue := range s.starts.queues {
		n += len(queue)
	}
	return n
}
