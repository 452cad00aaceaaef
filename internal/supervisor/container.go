package supervisor

import (
	"context"
	"time"

	"agency"
	"agency/internal/supervisor/observe"
)

// removeTime is how long the engine may take to remove a container.
const removeTime = 30 * time.Second

// removeContainer removes the container of an attempt that has ended, in the background: nothing of
// the agent runs in it any more. When the engine does not answer, rm, gc and the
// next daemon try again.
func (s *settler) removeContainer(r *agency.Run) {
	if r.Sandbox.Level != agency.SandboxContainer {
		return
	}
	s.life.Go(func() {
		if err := s.endContainer(s.life.ctx, r); err != nil && s.life.ctx.Err() == nil {
			s.log.Warn("remove the container of a run", "run", r.ID, "err", err)
		}
	})
}

// endContainer ends and removes the containers of a run's attempts, of which the earlier ones left
// theirs only to an engine that did not answer.
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
