package scheduler_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agency"
	"agency/internal/scheduler"
)

// lander lands nothing for as long as its record fails.
type lander struct{ failures, tries atomic.Int32 }

func (l *lander) Land(context.Context, scheduler.LandRequest) (agency.AgentLanding, error) {
	if l.tries.Add(1) <= l.failures.Load() {
		return agency.AgentLanding{}, errors.New("no space left on device")
	}
	return agency.AgentLanding{State: agency.WorkLanded}, nil
}

// A landing whose outcome cannot be recorded is tried again after a pause each time, and the session
// settles when it is done.
func TestLandingIsTriedAgainAfterAPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newFakeRuns(t, func(string, int) (*agency.Attempt, error) { return exits(0), nil })
		l := &lander{}
		l.failures.Store(5)
		s := c.engineWith(t, scheduler.Deps{Runs: c, Lander: l}, t.TempDir(), 1)
		id := create(t, s, agency.Plan{}, "a>merge").ID
		time.Sleep(3500 * time.Millisecond) // a pause takes a second
		if n := l.tries.Load(); n < 2 || n > 5 {
			t.Errorf("after three seconds it was tried %d times", n)
		}
		c.until(t, id, "the end", settled)
		agents, err := c.SessionAgents(t.Context(), id)
		if err != nil || agents[0].Landing.State != agency.WorkLanded || l.tries.Load() != 6 {
			t.Errorf("after %d tries: %+v, %v", l.tries.Load(), agents[0].Landing, err)
		}
	})
}
