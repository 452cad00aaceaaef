package supervisor_test

import (
	"context"
	"errors"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"agency"
	"agency/internal/supervisor"
)

// lingering returns a run whose agent takes a while to end, and counts the stops and forced stops
// that it gets.
func (w *world) lingering(name string, takes time.Duration) (r *agency.Run, p *wrapper, asked, forced *atomic.Int32) {
	w.t.Helper()
	r, p = w.started(name)
	asked, forced = new(atomic.Int32), new(atomic.Int32)
	p.link.StopFunc = func(by agency.EndedBy) error {
		if asked.Add(1) == 1 {
			w.after(takes, func() { _ = p.end(agency.Exit{ExitCode: 9, EndedBy: by}) })
		}
		return nil
	}
	p.link.ForceFunc = func() error { forced.Add(1); return nil }
	return r, p, asked, forced
}

// An agent keeps its grace while others join its stop: only a user who asks twice ends it.
func TestOnlyTheUserForces(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		join   func(w *world, r *agency.Run, p *wrapper)
		forced int32
	}{
		"the scheduler": {func(w *world, r *agency.Run, _ *wrapper) {
			for range 2 {
				w.call(func() { _ = w.sup.StopAttempt(context.Background(), r.ID, 1) })
			}
		}, 0},
		"a restart": {func(w *world, _ *agency.Run, _ *wrapper) {
			req := w.resumeRequest("fix-login")
			req.Restart = true
			w.call(func() { _, _ = w.sup.ResumeRun(context.Background(), req) })
		}, 0},
		"a new connection": {func(w *world, _ *agency.Run, p *wrapper) {
			w.sup.Wrappers.Disconnect(p.id, 1, p.link)
			if err := p.connect(); err != nil {
				w.t.Error(err)
			}
		}, 0},
		"a user": {func(w *world, _ *agency.Run, _ *wrapper) {
			w.call(func() { _, _ = w.sup.StopRun(context.Background(), "fix-login") })
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				r, p, asked, forced := w.lingering("fix-login", 5*time.Second)
				stopped := make(chan error, 1)
				go func() { _, err := w.sup.StopRun(context.Background(), "fix-login"); stopped <- err }()
				time.Sleep(time.Second)
				test.join(w, r, p)
				synctest.Wait()
				if asked.Load()+forced.Load() < 2 || forced.Load() != test.forced {
					t.Errorf("asked %d times, forced %d times, want %d", asked.Load(), forced.Load(), test.forced)
				}
				if err := <-stopped; err != nil {
					t.Error(err)
				}
				synctest.Wait()
			})
		})
	}
}

// A user who joins the stop of a scheduler asks for the first time.
func TestTheUserJoinsAStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, _, asked, forced := w.lingering("fix-login", 5*time.Second)
		w.call(func() { _ = w.sup.StopAttempt(context.Background(), r.ID, 1) })
		time.Sleep(time.Second)
		if _, err := w.sup.StopRun(t.Context(), "fix-login"); err != nil {
			t.Error(err)
		}
		if asked.Load() != 2 || forced.Load() != 0 {
			t.Errorf("asked %d times, forced %d times", asked.Load(), forced.Load())
		}
		synctest.Wait()
	})
}

// A wrapper without a connection does not get a second TERM, which it would treat as a forced stop.
func TestStopBySignalAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, p, _, _ := w.lingering("fix-login", 5*time.Second)
		w.sup.Wrappers.Disconnect(p.id, 1, p.link)
		var signals []syscall.Signal
		w.attempts.SignalFunc = func(_ agency.Process, sig syscall.Signal) error {
			if sig != syscall.SIGCONT {
				signals = append(signals, sig)
			}
			return nil
		}
		stopped := make(chan error, 1)
		go func() { _, err := w.sup.StopRun(context.Background(), "fix-login"); stopped <- err }()
		synctest.Wait()
		w.call(func() { _ = w.sup.StopAttempt(context.Background(), r.ID, 1) })
		synctest.Wait()
		w.call(func() { _, _ = w.sup.StopRun(context.Background(), "fix-login") })
		synctest.Wait()
		want := []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGTERM}
		if len(signals) != 3 || signals[0] != want[0] || signals[1] != want[1] || signals[2] != want[2] {
			t.Errorf("got signals %v, want %v", signals, want)
		}
		p.mustEnd(t, agency.Exit{EndedBy: agency.EndedByStop})
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		synctest.Wait()
	})
}

// patient gives the agents of new runs a grace of five minutes.
func (w *world) patient(name string) supervisor.NewRun {
	req := w.request(name)
	req.Settings.Grace = 5 * time.Minute
	return req
}

// A stop waits as long as its attempt's own grace.
func TestStopWaitsForTheGrace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var p *wrapper
		w.tmux.OnStart = func(l agency.Launch) error { p = w.wrap(l); return p.begin() }
		if _, err := w.createRun(t.Context(), w.patient("fix-login")); err != nil {
			t.Fatal(err)
		}
		p.link.StopFunc = func(by agency.EndedBy) error {
			w.after(5*time.Minute, func() { _ = p.end(agency.Exit{Signal: "SIGKILL", EndedBy: by}) })
			return nil
		}
		r, err := w.sup.StopRun(t.Context(), "fix-login")
		if err != nil || r.Attempt.State != agency.Killed || len(w.tmux.left()) != 0 {
			t.Errorf("got %+v, %v, sessions %v", r, err, w.tmux.left())
		}
	})
}

// Even if the client of a stop gave up, the session ends when the agent has ended.
func TestALateEndTakesTheSession(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(p *wrapper){
		"recorded": func(p *wrapper) { _ = p.end(agency.Exit{EndedBy: agency.EndedByStop}) },
		"lost":     func(p *wrapper) { p.die() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				r, p, _, _ := w.lingering("fix-login", time.Hour)
				_, err := w.sup.StopRun(t.Context(), "fix-login")
				wantCode(t, err, agency.CodeCleanupFailed)
				end(p)
				time.Sleep(time.Second)
				synctest.Wait()
				if a := w.run(r.ID).Attempt; a.State != agency.Killed || len(w.tmux.left()) != 0 {
					t.Errorf("got %+v, sessions %v", a, w.tmux.left())
				}
			})
		})
	}
}

// A session that tmux did not end when its agent was stopped is ended later: the run cannot be
// stopped again.
func TestASessionIsEndedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, _, _, _ := w.lingering("fix-login", time.Second)
		w.tmux.KillErr = errors.New("too many open files")
		if _, err := w.sup.StopRun(t.Context(), "fix-login"); err == nil {
			t.Error("the stop had all it needs")
		}
		time.Sleep(2 * rescan)
		if w.run(r.ID).Attempt.State != agency.Killed || len(w.tmux.left()) != 1 {
			t.Errorf("got %+v, sessions %v", w.run(r.ID).Attempt, w.tmux.left())
		}
		w.tmux.mu.Lock()
		w.tmux.KillErr = nil
		w.tmux.mu.Unlock()
		time.Sleep(2 * rescan)
		if len(w.tmux.left()) != 0 {
			t.Errorf("sessions %v", w.tmux.left())
		}
	})
}

// A creation that fails when its agent already runs waits for that agent's grace before it removes
// the worktree.
func TestUndoWaitsForTheGrace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.tmux.OnStart = func(l agency.Launch) error {
			p := w.wrap(l)
			w.attempts.change(p.dir, func(h *onHost) { h.start = &p.start }) // and the wrapper has not reported it
			w.tmux.OnKill = func(string) {
				w.after(5*time.Minute, func() { w.attempts.change(p.dir, func(h *onHost) { h.locked = false }) })
			}
			return nil
		}
		_, err := w.createRun(t.Context(), w.patient("fix-login"))
		if !agency.IsCode(err, agency.CodeTmuxStartFailed) || agency.IsCode(err, agency.CodeCleanupFailed) {
			t.Errorf("got %v", err)
		}
		w.wantNothing()
	})
}

// A stop that comes while a wrapper connects again, in the place of one that was killed, is not lost.
func TestStopWhileWrapperConnects(t *testing.T) {
	t.Parallel()
	for range 40 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			r, p := w.started("fix-login")
			w.sup.Wrappers.Disconnect(p.id, p.attempt, p.link)
			connected := make(chan error)
			go func() { connected <- p.connect() }()
			if _, err := w.sup.StopRun(context.Background(), r.Handle); err != nil {
				t.Error(err)
			}
			if err := <-connected; err != nil && !agency.IsCode(err, agency.CodePermissionDenied) { // it has ended
				t.Error(err)
			}
			synctest.Wait()
		})
	}
}
