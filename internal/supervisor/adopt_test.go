package supervisor_test

import (
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"agency"
)

// A daemon that cannot take back, once, what an earlier daemon began does so later, although the
// wrapper of the start is connected and waits.
func TestTakeBackIsRepeated(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ breaks, mends func(w *world) }{
		"tmux does not answer": {
			func(w *world) { w.tmux.KillErr = errBoom },
			func(w *world) { w.tmux.mu.Lock(); w.tmux.KillErr = nil; w.tmux.mu.Unlock() },
		},
		"the record cannot be read": {
			func(w *world) {
				failed := false
				w.store.StepsErr = func() error {
					if failed {
						return nil
					}
					failed = true
					return errBoom
				}
			},
			func(*world) {},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				p := w.cutOff("fix-login")
				test.breaks(w)
				w.start()
				_ = p.connect() // it may be refused
				synctest.Wait()
				test.mends(w)
				time.Sleep(time.Minute)
				if r := w.run(p.id); r.RemovedAt == nil || r.Attempt.ErrorCode != agency.CodeStartCutOff {
					t.Errorf("after a minute: removed %v, %s, %s", r.RemovedAt, r.Attempt.State, r.Attempt.ErrorCode)
				}
				w.wantNothing()
			})
		})
	}
}

// A runner whose exit record is there has run, also when a full disk refused the record of its
// start and the record of the run is older, as after a rebuild.
func TestExitWithoutAStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.cutOff("fix-login")
	exit := &agency.Exit{RunID: p.id, Attempt: 1, StartedAt: p.start.StartedAt, EndedAt: time.Now(), PID: 101, EndedBy: agency.EndedByRunner}
	w.attempts.change(p.dir, func(h *onHost) { h.exit, h.locked = exit, false })
	w.start()
	r := w.run(p.id)
	if a := &r.Attempt; a.State != agency.Completed || a.StartedAt == nil || a.ErrorCode != "" || r.RemovedAt != nil {
		t.Errorf("removed %v, %+v", r.RemovedAt, a)
	}
	if w.count(p.id, agency.AttemptStarted) != 1 || w.count(p.id, agency.AttemptEnded) != 1 {
		t.Errorf("events: %v", w.events(p.id))
	}
}

// An exit record that the system fails to read is not a missing one: the attempt stays as it is until
// the record can be read.
func TestExitThatCannotBeReadYet(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before func(w *world) *wrapper
		dies   func(w *world, p *wrapper)
		state  agency.State
	}{
		"with the daemon alive": {
			func(w *world) *wrapper { _, p := w.started("fix-login"); return p },
			func(w *world, p *wrapper) { w.sup.Wrappers.Disconnect(p.id, 1, p.link) },
			agency.Running,
		},
		"while no daemon runs": {
			func(w *world) *wrapper { _, p := w.started("fix-login"); w.sup.Stop(); return p },
			func(w *world, _ *wrapper) { w.start() },
			agency.Running,
		},
		"before the record has its start": {
			func(w *world) *wrapper { return w.cutOff("fix-login") },
			func(w *world, _ *wrapper) { w.start() },
			agency.Queued,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				p := test.before(w)
				exit := &agency.Exit{RunID: p.id, Attempt: 1, StartedAt: p.start.StartedAt, EndedAt: time.Now(), PID: 101, EndedBy: agency.EndedByRunner}
				w.attempts.change(p.dir, func(h *onHost) { h.exit, h.locked, h.broken = exit, false, syscall.EMFILE })
				test.dies(w, p)
				time.Sleep(time.Hour)
				if a := w.run(p.id).Attempt; a.State != test.state || w.count(p.id, agency.AttemptEnded) != 0 {
					t.Errorf("before the record can be read: %s, %s", a.State, a.Error)
				}
				w.attempts.change(p.dir, func(h *onHost) { h.broken = nil })
				time.Sleep(time.Minute)
				if r := w.run(p.id); r.Attempt.State != agency.Completed || r.RemovedAt != nil || w.count(p.id, agency.AttemptEnded) != 1 {
					t.Errorf("a minute after it can be read: removed %v, %+v", r.RemovedAt, r.Attempt)
				}
			})
		})
	}
}

// cutOff ends the daemon while it creates a run, before the record has the worktree, and returns
// the wrapper, which waits.
func (w *world) cutOff(name string) *wrapper {
	w.t.Helper()
	var p *wrapper
	w.tmux.OnStart = func(l agency.Launch) error { p = w.wrap(l); return p.begin() }
	dies := func() error { return agency.Errorf(agency.CodeDaemonConnectFailed, "the daemon is stopping") }
	w.store.FinishStepFunc = func(string) error {
		w.store.ChangeRunErr = dies
		return dies()
	}
	_, err := w.createRun(w.t.Context(), w.request(name))
	wantCode(w.t, err, agency.CodeDaemonLost)
	w.sup.Stop()
	w.store.FinishStepFunc, w.store.ChangeRunErr = nil, nil
	return p
}

// A link that does not take the go is closed, and the wrapper gets the go when it has connected
// again.
func TestGoIsRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.tmux.OnStart = func(l agency.Launch) error {
			p := w.wrap(l)
			broken := p.link
			broken.GoFunc = func() error { return errBoom }
			broken.CloseFunc = func() {
				w.call(func() {
					w.sup.Wrappers.Disconnect(p.id, 1, broken)
					p.link = &fakeLink{GoFunc: p.run, StopFunc: broken.StopFunc}
					_ = p.connect()
				})
			}
			return p.begin()
		}
		if r := w.create("fix-login"); r.Attempt.State != agency.Running {
			t.Errorf("it is %s", r.Attempt.State)
		}
	})
}
