package supervisor

import (
	"context"
	"time"

	"agency"
	"agency/internal/supervisor/observe"
)

// How long the engine may take to remove a container, and how long to wait at most before it is asked
// again.
const (
	removeTime  = 30 * time.Second
	removeAgain = time.Minute
)

// removeContainer removes the container of an attempt that has ended, in the background. An engine
// that does not answer, or that refuses because it is still about to start the container, is asked
// again until the container is gone; so do rm, gc and the next daemon.
func (s *settler) removeContainer(r *agency.Run) {
	if r.Sandbox.Level != agency.SandboxContainer {
		return
	}
	s.life.Go(func() {
		for wait := time.Second; ; wait = min(2*wait, removeAgain) {
			err := s.endContainer(s.life.ctx, r)
			if err == nil || s.life.ctx.Err() != nil {
				return
			}
			if wait == time.Second {
				s.log.Warn("remove the container of a run; it is tried again", "run", r.ID, "err", err)
			}
			select {
			case <-time.After(wait):
			case <-s.life.ctx.Done():
				return
			}
		}
	})
}

// endContainer ends and removes the containers of all attempts of a run. An earlier attempt still has
// one only if the engine did not answer at the end of that attempt.
func (s *settler) endContainer(ctx context.Context, r *agency.Run) error {
	if r.Sandbox.Level != agency.SandboxContainer {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, removeTime)
	defer cancel()
	for n := 1; n <= r.Attempt.Number; n++ {
		if err := s.sandbox.Remove(ctx, observe.AttemptDir(r.Dir, n)); err != nil {
			return err
		}
	}
	return nil
}
