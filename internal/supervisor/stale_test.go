package supervisor_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agency"
)

// A goroutine settles an attempt from a record that it read before the attempt ended and the next
// one began.
func TestAStaleSettleLeavesTheNextAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, first := w.started("fix-login")
		stale := w.run(r.ID)
		first.die()
		time.Sleep(time.Second)
		synctest.Wait()
		second := w.resume("fix-login")
		watched := len(w.watcher.watched())
		if err := w.sup.Settle(t.Context(), stale); err != nil {
			t.Fatal(err)
		}
		if got := len(w.watcher.watched()); got != watched || w.sup.Observer.LiveRuns() != 1 {
			t.Errorf("%d folders are watched, want %d; %d live runs", got, watched, w.sup.Observer.LiveRuns())
		}
		if _, _, err := w.sup.Input.Send(t.Context(), "fix-login", "hello", ""); err != nil || len(second.link.inputs) != 1 {
			t.Errorf("got inputs %q, %v", second.link.inputs, err)
		}
		second.die()
		time.Sleep(time.Second)
		synctest.Wait()
		if a := w.run(r.ID).Attempt; a.Number != 2 || a.ErrorCode != agency.CodeRunnerDisappeared {
			t.Errorf("after the death of its wrapper: got %+v", a)
		}
		if n := w.sup.Observer.LiveRuns(); n != 0 {
			t.Errorf("%d live runs", n)
		}
	})
}

// A watch that a settle of an ended attempt starts again is removed.
func TestAStaleSettleWatchesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, p := w.started("fix-login")
	stale := w.run(r.ID)
	p.mustEnd(t, agency.Exit{EndedBy: agency.EndedByRunner})
	if err := w.sup.Settle(t.Context(), stale); err != nil {
		t.Fatal(err)
	}
	if n, watched := w.sup.Observer.LiveRuns(), w.watcher.watched(); n != 0 || len(watched) != 0 {
		t.Errorf("%d live runs, watches of %v", n, watched)
	}
}

// The slower of two settles of an attempt finishes when the next attempt is starting.
func TestASlowSettleLeavesTheNextAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, first := w.started("fix-login")
		stale := w.run(r.ID)
		ending, goOn, settled := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		var slow atomic.Bool
		w.attempts.EndTreeFunc = func() {
			if slow.CompareAndSwap(false, true) {
				close(ending)
				<-goOn
			}
		}
		w.attempts.change(first.dir, func(h *onHost) { h.locked = false })
		go func() { settled <- w.sup.Settle(context.Background(), stale) }()
		<-ending
		w.sup.Wrappers.Disconnect(first.id, first.attempt, first.link)
		time.Sleep(time.Second)
		synctest.Wait()
		w.tmux.OnStart = func(l agency.Launch) error {
			close(goOn)
			if err := <-settled; err != nil {
				t.Error(err)
			}
			second := w.wrap(l)
			w.after(time.Second, func() { _ = second.begin() })
			return nil
		}
		if _, err := w.sup.ResumeRun(t.Context(), w.resumeRequest("fix-login")); err != nil {
			t.Fatal(err)
		}
		if a := w.run(r.ID).Attempt; a.Number != 2 || a.State != agency.Running || w.sup.Observer.LiveRuns() != 1 {
			t.Errorf("got %+v, %d live runs", a, w.sup.Observer.LiveRuns())
		}
	})
}

// An attempt that was cut off is failed a second time, from an older record, while the next one
// runs.
func TestAFailingStartLeavesTheNextAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r := w.ended("fix-login")
		w.tmux.OnStart = func(agency.Launch) error { return errBoom }
		stale := new(agency.Run)
		w.store.FinishStepFunc = func(string) error {
			if stale.ID == "" {
				*stale = *w.run(r.ID)
			}
			return nil
		}
		if _, err := w.sup.ResumeRun(t.Context(), w.resumeRequest("fix-login")); err == nil {
			t.Fatal("got no error")
		}
		w.store.FinishStepFunc = nil
		w.resume("fix-login")
		if stale.Attempt.Number != 2 || stale.Attempt.State != agency.Queued {
			t.Fatalf("read %+v", stale.Attempt)
		}
		if err := w.sup.Settle(t.Context(), stale); err != nil {
			t.Fatal(err)
		}
		if a := w.run(r.ID).Attempt; a.Number != 3 || a.State != agency.Running || len(w.tmux.left()) != 1 {
			t.Errorf("got %+v, sessions %v", a, w.tmux.left())
		}
	})
}

// An agent ends while a rescan, which has read the record already, examines its run.
func TestARescanDoesNotWriteWhatIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var p *wrapper
		var armed atomic.Bool
		w.harness.FilesFunc = func(*agency.AgentState) []string {
			if armed.CompareAndSwap(true, false) {
				if err := p.end(agency.Exit{EndedBy: agency.EndedByRunner}); err != nil {
					t.Error(err)
				}
			}
			return nil
		}
		var r *agency.Run
		r, p = w.started("fix-login")
		armed.Store(true)
		w.sup.Rescan()
		if armed.Load() {
			t.Fatal("the rescan did not look at the run")
		}
		if text := mustRead(t, filepath.Join(r.Dir, "state.json")); !strings.Contains(text, `"DONE"`) {
			t.Errorf("state.json: %s", text)
		}
	})
}

// die kills a wrapper without an exit record.
func (p *wrapper) die() {
	p.w.attempts.change(p.dir, func(h *onHost) { h.locked = false })
	p.w.sup.Wrappers.Disconnect(p.id, p.attempt, p.link)
}
