package supervisor_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agency"
)

// Only the wrapper of the running attempt may speak for the run.
func TestFencing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, p := w.started("fix-login")
	for name, hello := range map[string]agency.WrapperHello{
		"wrong token": {RunID: r.ID, Attempt: 1, Token: "guess"},
		"no token":    {RunID: r.ID, Attempt: 1},
		"its hash":    {RunID: r.ID, Attempt: 1, Token: agency.TokenHash(p.token)},
	} {
		link := &fakeLink{}
		if err := w.sup.Wrappers.Connect(t.Context(), hello, link); !agency.IsCode(err, agency.CodePermissionDenied) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if err := w.sup.Wrappers.Connect(t.Context(), agency.WrapperHello{RunID: r.ID, Attempt: 2, Token: p.token}, &fakeLink{}); err == nil {
		t.Error("an attempt that does not exist was let in")
	}
	if p.link.closed {
		t.Error("a refused wrapper closed the link of the real one")
	}

	p.mustEnd(t, agency.Exit{EndedBy: agency.EndedByRunner})
	wantCode(t, p.connect(), agency.CodePermissionDenied)
	second := w.resume("fix-login")
	wantCode(t, p.connect(), agency.CodePermissionDenied)

	// Later messages of the old one change nothing.
	before := w.run(r.ID)
	p.exit.Store(&agency.Exit{ExitCode: 9, EndedBy: agency.EndedByRunner, EndedAt: time.Now()})
	if err := p.update(); err != nil {
		t.Fatal(err)
	}
	w.sup.Wrappers.Disconnect(p.id, 1, second.link)
	if after := w.run(r.ID); after.Attempt.State != agency.Running || !after.UpdatedAt.Equal(before.UpdatedAt) {
		t.Errorf("got %+v", after.Attempt)
	}
}

// resume starts another attempt, and its wrapper.
func (w *world) resume(ref string) *wrapper {
	w.t.Helper()
	var p *wrapper
	w.tmux.OnStart = func(l agency.Launch) error { p = w.wrap(l); return p.begin() }
	if _, err := w.sup.ResumeRun(w.t.Context(), w.resumeRequest(ref)); err != nil {
		w.t.Fatal(err)
	}
	return p
}

// A new connection of a wrapper replaces its older one.
func TestReconnect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, p := w.started("fix-login")
	old := p.link
	p.link = &fakeLink{StopFunc: old.StopFunc}
	if err := p.connect(); err != nil {
		t.Fatal(err)
	}
	if !old.closed || p.link.closed {
		t.Errorf("old closed %v, new closed %v", old.closed, p.link.closed)
	}
	w.sup.Wrappers.Disconnect(p.id, 1, old) // late
	if _, d, err := w.sup.Query.Show(t.Context(), "fix-login"); err != nil || !d.Connected {
		t.Errorf("got %+v, %v", d, err)
	}
	if _, _, err := w.sup.Input.Send(t.Context(), "fix-login", "hello", ""); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(p.link.inputs, []string{"hello"}) || len(old.inputs) != 0 {
		t.Errorf("inputs: old %q, new %q", old.inputs, p.link.inputs)
	}
	if n := w.count(r.ID, agency.InputDelivered); n != 1 {
		t.Errorf("%d events", n)
	}
}

// No run shows a connected wrapper once its end is in the record.
func TestNoRunIsConnectedAfterItsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, _ := w.started("fix-login")
	_, err := w.store.ChangeRun(t.Context(), r.ID, func(r *agency.Run) ([]agency.EventDraft, error) {
		r.Attempt.State = agency.Completed // as the end of the attempt does, before the link goes
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, d, err := w.sup.Query.Show(t.Context(), "fix-login"); err != nil || d.Connected {
		t.Errorf("connected: %v, %v", d.Connected, err)
	}
}

// However often a wrapper connects, no watch on its worktree is left after its end.
func TestReconnectLeavesNoWatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, p := w.started("fix-login")
	for range 3 {
		w.sup.Wrappers.Disconnect(p.id, 1, p.link)
		if err := p.connect(); err != nil {
			t.Fatal(err)
		}
	}
	p.mustEnd(t, agency.Exit{EndedBy: agency.EndedByRunner})
	if got := w.watcher.watched(); len(got) != 0 {
		t.Errorf("left: watches of %v, %v", got, w.watcher.uses)
	}
}

// A wrapper knows only the id of its run; the user sees the name in the error.
func TestInputIsRefusedByName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, p := w.started("fix-login")
	p.link.refusal = agency.Errorf(agency.CodeInputRefused, "the user is typing in %s", r.ID).WithHint("agency attach %s", r.ID)
	_, _, err := w.sup.Input.Send(t.Context(), "fix-login", "hello", "")
	e := agency.AsError(err)
	if e == nil || e.Code != agency.CodeInputRefused || e.Message != "the user is typing in fix-login" || e.Hint != "agency attach fix-login" {
		t.Errorf("got %+v", e)
	}
}

func TestInputIsRefusedToTheDead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ended("fix-login")
	_, _, err := w.sup.Input.Send(t.Context(), "fix-login", "hello", "")
	wantCode(t, err, agency.CodeInvalidState)
}

// After a start of the daemon, an input waits for the wrapper to connect again, but not for ever.
func TestInputAwaitsTheWrapper(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		comesAfter time.Duration
		code       agency.Code
		took       time.Duration
	}{
		"at once": {0, "", 0},
		"later":   {time.Second, "", time.Second},
		"never":   {time.Hour, agency.CodeInvalidState, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				_, p := w.started("fix-login")
				w.restart()
				comes := time.AfterFunc(test.comesAfter, func() {
					if err := p.connect(); err != nil {
						t.Error(err)
					}
				})
				defer comes.Stop()
				begin := time.Now()
				_, _, err := w.sup.Input.Send(t.Context(), "fix-login", "hello", "")
				if got := codeOf(err); got != test.code {
					t.Errorf("got %v, want %q", err, test.code)
				}
				if took := time.Since(begin); took != test.took {
					t.Errorf("took %s, want %s", took, test.took)
				}
				synctest.Wait() // for the rest of connect
			})
		})
	}
}

func codeOf(err error) agency.Code {
	if err == nil {
		return ""
	}
	return agency.AsError(err).Code
}

// The agent's status is recorded at the file event, and at the latest at the next rescan.
func TestWord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, _ := w.started("fix-login")
		path := filepath.Join(r.Worktree, agency.ContractFile)
		mustWrite(t, path, asking("Which one?"))
		w.watcher.hints <- path
		synctest.Wait()
		if got := w.sup.Observer.Derive(w.run(r.ID)); got.Label != agency.NeedsInput || got.Summary != "Which one?" {
			t.Errorf("after a hint: got %+v", got)
		}
		mustWrite(t, path, asking("And which other one?"))
		time.Sleep(rescan)
		synctest.Wait()
		if got := w.sup.Observer.Derive(w.run(r.ID)); got.Summary != "And which other one?" {
			t.Errorf("after a rescan: got %+v", got)
		}
		n := w.count(r.ID, agency.ContractChanged)
		mustWrite(t, path, asking("And which other one?")) // the same again
		time.Sleep(rescan)
		w.watcher.hints <- "/elsewhere/file"
		synctest.Wait()
		if again := w.count(r.ID, agency.ContractChanged); again != n {
			t.Errorf("%d events for nothing new", again-n)
		}
		mustWrite(t, path, "{")
		time.Sleep(rescan + time.Second) // it may be in the middle of a write, so it is read again
		synctest.Wait()
		got := w.sup.Observer.Derive(w.run(r.ID))
		if got.Label != agency.Active || got.Problem == "" {
			t.Errorf("unreadable: got %+v", got)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		time.Sleep(rescan)
		synctest.Wait()
		if got := w.sup.Observer.Derive(w.run(r.ID)); got.Problem != "" {
			t.Errorf("gone: got %+v", got)
		}
	})
}

// An agent that clears its worktree, as by git clean, is read again as soon as it writes, even if
// its new folder has the same inode as the old one.
func TestStatusFileOfANewFolder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, _ := w.started("fix-login")
		path := filepath.Join(r.Worktree, agency.ContractFile)
		state := filepath.Dir(path)
		synctest.Wait() // it is watched
		w.tick(path)    // the kernel stamps files with its last tick
		if err := os.RemoveAll(filepath.Join(r.Worktree, agency.DotDir)); err != nil {
			t.Fatal(err)
		}
		w.watcher.Remove(state) // as the kernel does
		w.watcher.hints <- state
		time.Sleep(time.Second)
		synctest.Wait() // no look comes between the folder and its file: this watcher tells of no file
		mustWrite(t, path, asking("Which one?"))
		time.Sleep(time.Second)
		synctest.Wait()
		if got := w.sup.Observer.Derive(w.run(r.ID)); got.Summary != "Which one?" {
			t.Errorf("after a second: got %+v", got)
		}
		if !slices.Contains(w.watcher.watched(), state) {
			t.Error("it is not watched")
		}
	})
}

func asking(question string) string {
	return `{"schema_version":"1.0","status":"needs_input","updated_at":"","summary":"s","questions":["` + question + `"],"blockers":[],"how_to_test":"","risks":[]}`
}

// A status belongs to its attempt: one that an older attempt left never describes a newer one.
func TestAnOldStatusFileIsArchived(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, p := w.started("fix-login")
	path := filepath.Join(r.Worktree, agency.ContractFile)
	mustWrite(t, path, asking("Which one?"))
	p.mustEnd(t, agency.Exit{EndedBy: agency.EndedByRunner})
	if got := w.sup.Observer.Derive(w.run(r.ID)); got.Label != agency.NeedsInput {
		t.Errorf("the last word came with the end, and the status is %+v", got)
	}
	// Unnoticed, after the end.
	mustWrite(t, path, asking("Too late?"))
	w.resume("fix-login")
	got := w.run(r.ID)
	if status := w.sup.Observer.Derive(got); status.Label != agency.Active {
		t.Errorf("attempt 2: got %+v", status)
	}
	if text := mustRead(t, filepath.Join(r.Dir, "attempts", "1", "runner_status.json")); text != asking("Too late?") {
		t.Errorf("archived: got %s", text)
	}
	attempts, err := w.store.Attempts(t.Context(), r.ID)
	if err != nil || len(attempts) != 2 || attempts[0].Reported.Contract.Questions[0] != "Which one?" {
		t.Errorf("got %+v, %v", attempts, err)
	}
}

// A reading of an attempt that is over is dropped.
func TestAStaleReadingIsDropped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, p := w.started("fix-login")
	path := filepath.Join(r.Worktree, agency.ContractFile)
	w.sup.Stop()
	read, goOn := make(chan struct{}), make(chan struct{})
	w.start()
	if err := p.connect(); err != nil {
		t.Fatal(err)
	}
	w.store.ChangeRunFunc = func() {
		w.store.ChangeRunFunc = nil
		close(read)
		<-goOn
	}
	mustWrite(t, path, asking("Stale?"))
	w.watcher.hints <- path
	<-read
	_, err := w.store.ChangeRun(context.Background(), r.ID, func(r *agency.Run) ([]agency.EventDraft, error) {
		r.Attempt.State, r.Attempt.EndedAt = agency.Completed, new(time.Now())
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	close(goOn)
	w.sup.Stop() // waits for the reading
	if c := w.run(r.ID).Attempt.Reported.Contract; c == nil || c.Status != agency.ReportedWorking {
		t.Errorf("got %+v", c)
	}
}

// Some statuses change with time alone.
func TestWaitForAStall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.started("fix-login")
		begin := time.Now()
		_, statuses, err := w.sup.Query.Wait(t.Context(), []string{"fix-login"}, nil)
		if err != nil || statuses[0].Label != agency.Stalled {
			t.Fatalf("got %+v, %v", statuses, err)
		}
		if took := time.Since(begin); took < stallThreshold-time.Second || took > stallThreshold+rescan {
			t.Errorf("took %s", took)
		}
	})
}

func TestWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, p := w.started("one")
		w.ended("two")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		runs, statuses, err := w.sup.Query.Wait(ctx, []string{"one", "two"}, nil)
		if !errors.Is(err, context.DeadlineExceeded) || len(runs) != 2 || statuses[0].Label != agency.Active {
			t.Fatalf("got %+v, %v", statuses, err)
		}
		w.after(time.Second, func() { _ = p.end(agency.Exit{ExitCode: 1, EndedBy: agency.EndedByRunner}) })
		if _, statuses, err = w.sup.Query.Wait(t.Context(), []string{"one", "two"}, nil); err != nil || statuses[0].Label != agency.LabelFailed {
			t.Errorf("got %+v, %v", statuses, err)
		}
		_, _, err = w.sup.Query.Wait(t.Context(), []string{"one"}, []agency.Label{agency.ReadyForReview})
		wantCode(t, err, agency.CodeInvalidState)
		_, _, err = w.sup.Query.Wait(t.Context(), []string{"unknown"}, nil)
		wantCode(t, err, agency.CodeRunNotFound)
	})
}

// A wrapper whose attempt is recorded as ended while it connects is refused, and no watch is left.
func TestConnectToTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, p := w.started("fix-login")
	w.store.ChangeRunFunc = func() {
		w.store.ChangeRunFunc = nil
		if err := p.end(agency.Exit{EndedBy: agency.EndedByRunner}); err != nil {
			t.Error(err)
		}
	}
	wantCode(t, p.connect(), agency.CodePermissionDenied)
	if n := w.sup.Observer.LiveRuns(); n != 0 {
		t.Errorf("%d runs are watched", n)
	}
	if events := w.events(r.ID); events[len(events)-1].Type != agency.AttemptEnded {
		t.Errorf("after its end: %+v", events[len(events)-1])
	}
}
