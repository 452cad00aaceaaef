package supervisor

import (
	"context"
	"log/slog"
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

// containers removes the containers of attempts that have ended.
type containers struct {
	sandbox Sandbox
	log     *slog.Logger
	life    *life
}

// removeSoon removes the container of an attempt that has ended, in the background. An engine
// that does not answer, or that refuses because it is still about to start the container, is asked
// again until the container is gone; so do rm, gc and the next daemon.
func (c *containers) removeSoon(r *agency.Run) {
	if r.Sandbox.Level != agency.SandboxContainer {
		return
	}
	c.life.Go(func() {
		for wait := time.Second; ; wait = min(2*wait, removeAgain) {
			err := c.remove(c.life.ctx, r)
			if err == nil || c.life.ctx.Err() != nil {
				return
			}
			if wait == time.Second {
				c.log.Warn("remove the container of a run; it is tried again", "run", r.ID, "err", err)
			}
			select {
			case <-time.After(wait):
			case <-c.life.ctx.Done():
				return
			}
		}
	})
}

// remove ends and removes the containers of all attempts of a run. An earlier attempt still has
// one only if the engine did not answer at the end of that attempt.
func (c *containers) remove(ctx context.Context, r *agency.Run) error {
	if r.Sandbox.Level != agency.SandboxContainer {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, removeTime)
	defer cancel()
	for n := 1; n <= r.Attempt.Number; n++ {
		if err := c.sandbox.Remove(ctx, observe.AttemptDir(r.Dir, n)); err != nil {
			return err
		}
	}
	return nil
}
