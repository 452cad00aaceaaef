package supervisor_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"agency"
)

// The container of an ended run is removed in the end, also by an engine that refuses at first.
func TestContainerIsRemovedInTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		tries := 0
		w.sandbox.remove = func() error {
			if tries++; tries < 4 {
				return errors.New("the engine is busy")
			}
			return nil
		}
		r, p := w.started("boxed")
		_, err := w.store.ChangeRun(t.Context(), r.ID, func(r *agency.Run) ([]agency.EventDraft, error) {
			r.Sandbox.Level = agency.SandboxContainer
			return nil, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		p.mustEnd(t, agency.Exit{EndedBy: agency.EndedByRunner})
		time.Sleep(10 * time.Second) // 1, 2 and 4 seconds
		synctest.Wait()
		if tries != 4 {
			t.Errorf("the engine was asked %d times, want 4", tries)
		}
		time.Sleep(time.Hour)
		if tries != 4 {
			t.Errorf("the engine was asked %d times after the container was gone", tries)
		}
	})
}
