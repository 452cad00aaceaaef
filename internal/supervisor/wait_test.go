package supervisor_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"agency"
)

// cleaningUp returns a run whose wrapper lives on for a while after the end of its agent.
func (w *world) cleaningUp(name string, takes time.Duration) *wrapper {
	w.t.Helper()
	_, p := w.started(name)
	p.link.StopFunc = func(by agency.EndedBy) error {
		now := time.Now()
		p.exit.Store(&agency.Exit{RunID: p.id, Attempt: 1, StartedAt: p.start.StartedAt, EndedAt: now, ExitCode: 143, Signal: "SIGTERM", EndedBy: by})
		w.attempts.change(p.dir, func(h *onHost) { h.exit = p.exit.Load() })
		w.after(takes, func() { w.attempts.change(p.dir, func(h *onHost) { h.locked = false }) })
		return p.update()
	}
	return p
}

// waited is the result of a wait.
type waited struct {
	runs []agency.Run
	err  error
}

func (w *world) wait(ctx context.Context, labels ...agency.Label) <-chan waited {
	result := make(chan waited, 1)
	go func() {
		runs, _, err := w.sup.Query.Wait(ctx, []string{"fix-login"}, labels)
		result <- waited{runs, err}
	}()
	return result
}

func (w *world) wantRestarting(id agency.RunID, want bool) {
	w.t.Helper()
	if got, err := w.sup.Query.Restarting(context.Background(), id); got != want || err != nil {
		w.t.Errorf("it is being restarted: got %v, %v", got, err)
	}
}

// An attempt that is stopped for a restart does not end a wait.
func TestWaitSeesThroughARestart(t *testing.T) {
	t.Parallel()
	for name, labels := range map[string][]agency.Label{"settled": nil, "a label": {agency.LabelCompleted}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				p := w.cleaningUp("fix-login", 5*time.Second)
				result := w.wait(context.Background(), labels...)
				brief, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				timedOut := w.wait(brief, labels...)
				var second *wrapper
				w.tmux.OnStart = func(l agency.Launch) error { second = w.wrap(l); return second.begin() }
				req := w.resumeRequest("fix-login")
				req.Restart = true
				w.after(2*time.Second, func() { w.wantRestarting(p.id, true) })
				if _, err := w.sup.ResumeRun(t.Context(), req); err != nil {
					t.Fatal(err)
				}
				if got := <-timedOut; !errors.Is(got.err, context.DeadlineExceeded) || len(got.runs) != 1 || got.runs[0].ID != p.id {
					t.Errorf("the time was up: got %+v", got)
				}
				w.wantRestarting(p.id, true) // a caller may have read the first attempt
				second.mustEnd(t, agency.Exit{EndedBy: agency.EndedByRunner})
				if got := <-result; got.err != nil || got.runs[0].Attempt.Number != 2 || got.runs[0].Attempt.State != agency.Completed {
					t.Errorf("got %+v", got)
				}
			})
		})
	}
}

// If a restart is given up, the stopped attempt ends the wait. The same holds after a crash during
// a restart.
func TestWaitAfterACutOffRestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.cleaningUp("fix-login", time.Hour)
		result := w.wait(context.Background())
		req := w.resumeRequest("fix-login")
		req.Restart = true
		begin := time.Now()
		_, err := w.sup.ResumeRun(t.Context(), req)
		wantCode(t, err, agency.CodeCleanupFailed)
		if got := <-result; got.err != nil || got.runs[0].Attempt.Number != 1 || got.runs[0].Attempt.State != agency.Killed {
			t.Errorf("given up: got %+v", got)
		}
		if took := time.Since(begin); took < 10*time.Second || took > time.Minute {
			t.Errorf("took %s", took)
		}
		w.restart()
		if got := <-w.wait(context.Background()); got.err != nil || !got.runs[0].Attempt.Restarting || got.runs[0].Attempt.State != agency.Killed {
			t.Errorf("after a crash: got %+v", got)
		}
		w.wantRestarting(p.id, false)
	})
}
