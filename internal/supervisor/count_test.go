package supervisor_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"agency"
)

// A run is counted when it ends, once, and not while its agent works. What git cannot count stays
// as it was.
func TestRunsAreCountedAtRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		counts := 0
		w.git.DiffStatFunc = func(string) (agency.DiffStat, error) {
			counts++
			return agency.DiffStat{Files: 2, Added: 120, Deleted: 8}, nil
		}
		if err := w.sup.Counter.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer w.sup.Counter.Stop()
		_, works := w.started("works")
		r := w.ended("done")
		time.Sleep(rescan)
		if got := w.run(r.ID).Changes; counts != 1 || got == nil || *got != (agency.ChangeSize{Files: 2, Added: 120, Deleted: 8}) {
			t.Errorf("counted %d times: %+v", counts, got)
		}
		w.git.DiffStatFunc = func(string) (agency.DiffStat, error) { counts++; return agency.DiffStat{}, errors.New("no") }
		works.mustEnd(t, agency.Exit{EndedBy: agency.EndedByRunner})
		time.Sleep(rescan)
		if got := w.run(works.id).Changes; counts != 2 || got != nil {
			t.Errorf("counted %d times: %+v", counts, got)
		}
	})
}
