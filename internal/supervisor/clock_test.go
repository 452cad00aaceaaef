package supervisor_test

import (
	"testing"
	"testing/synctest"
	"time"

	"agency"
)

// While the daemon's clock is ahead, because the system's was set back, a wrapper whose heartbeats are
// of the system's clock answers as always, also after a restart of the daemon; a silent one is noticed.
func TestWrapperWhenTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.sup.Stop()
		*w.ahead = time.Hour
		w.start()
		r, p := w.started("fix-login")
		is := func(label agency.Label) {
			t.Helper()
			if got := w.label(r.ID); got != label {
				t.Errorf("got %s, want %s", got, label)
			}
		}
		for range 6 {
			p.beat(t)
			time.Sleep(5 * time.Second)
			synctest.Wait()
			is(agency.Active)
		}
		w.restart()
		is(agency.Active)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		is(agency.Stalled)
	})
}
