package watchdog_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agency"
)

func (w *record) Disks() ([]agency.Disk, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.blind {
		return nil, errors.New("the disk does not answer")
	}
	return slices.Clone(w.disks), nil
}

func (w *record) DeliverHost(_ context.Context, a *agency.Alert) ([]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notified = append(w.notified, a.Cause)
	return []string{"user"}, nil
}

// fill sets the free part of the disk of a path, of which 100 must be free; a negative number is an
// error. The watchdog then looks at it.
func (w *world) fill(path string, free int64) {
	w.mu.Lock()
	w.blind = free < 0
	w.disks = slices.DeleteFunc(w.disks, func(d agency.Disk) bool { return d.Path == path })
	w.disks = append(w.disks, agency.Disk{Path: path, Free: free, Least: 100})
	w.mu.Unlock()
	w.pass(poll)
}

// A full disk is one episode until it has room again, across restarts of the daemon, and each disk
// has its own.
func TestLowDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fill("/data", 100)
		w.want()
		w.fill("/data", 99)
		w.want(agency.AlertHostDisk)
		w.fill("/data", 124)
		w.restart()
		w.fill("/data", -1)
		if w.open() != 1 || len(w.notifications()) != 1 {
			t.Errorf("%d open, notified %q", w.open(), w.notifications())
		}
		w.fill("/data/worktrees", 0)
		w.fill("/data", 125)
		w.want(agency.AlertHostDisk, agency.AlertHostDisk)
		if a := w.alert(0); a.Open() || w.open() != 1 {
			t.Errorf("%+v is open, as are %d", a, w.open())
		}
		w.fill("/data", 10)
		if w.open() != 2 || !slices.Equal(w.notifications(), []string{"/data", "/data/worktrees", "/data"}) {
			t.Errorf("%d open, notified %q", w.open(), w.notifications())
		}
	})
}

// It is repeated like every other alert, until the user acknowledges it.
func TestLowDiskAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fill("/data", 0)
		w.pass(6 * time.Minute)
		if got := w.notifications(); len(got) != 2 {
			t.Errorf("notified %q", got)
		}
		w.mu.Lock()
		w.alerts[0].AckedAt = new(time.Now())
		w.mu.Unlock()
		w.pass(10 * time.Hour)
		if got := w.notifications(); len(got) != 2 || w.open() != 1 {
			t.Errorf("notified %q", got)
		}
	})
}
