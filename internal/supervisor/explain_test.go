package supervisor_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agency"
)

// An explanation has what decided, what was before, and the last lines of the evidence, however
// long the file is.
func TestExplain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, p := w.started("fix-login")
		for i := range 40 {
			w.tell(p, agency.Evidence{Signal: agency.SignalToolStarted, ID: fmt.Sprint(i), Tool: "Bash", Text: strings.Repeat("x", 1999)})
		}
		w.tell(p, agency.Evidence{Signal: agency.SignalAsked, ID: "q", Kind: agency.AsksQuestion, Text: "Which?"}, agency.Evidence{Signal: agency.SignalUnknown, Event: "New"})
		w.watcher.hints <- filepath.Join(p.dir, agency.EventsFile)
		synctest.Wait()
		_, e, newest, err := w.sup.Query.Explain(t.Context(), "fix-login")
		if err != nil {
			t.Fatal(err)
		}
		if e.Status.Label != agency.NeedsInput || e.Rule != 8 || e.Status.Decided != agency.DecidedBy(agency.FromHook) || len(e.Unknown) != 1 {
			t.Errorf("got %+v", e)
		}
		if len(newest) != 20 || newest[19].Event != "New" || newest[18].Text != "Which?" || newest[0].Signal != agency.SignalToolStarted {
			t.Errorf("%d lines, the last %+v", len(newest), newest[len(newest)-1])
		}
		// A missing file is not an error.
		if err := os.Remove(filepath.Join(p.dir, agency.EventsFile)); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/etc/passwd", filepath.Join(p.dir, agency.EventsFile)); err != nil {
			t.Fatal(err)
		}
		if _, _, newest, err = w.sup.Query.Explain(t.Context(), "fix-login"); err != nil || len(newest) != 0 {
			t.Errorf("got %d lines, %v", len(newest), err)
		}
		p.mustEnd(t, agency.Exit{ExitCode: 3, EndedBy: agency.EndedByRunner})
		if got := w.label(r.ID); got != agency.LabelFailed {
			t.Errorf("a failed agent that asked is %s", got)
		}
		_, _, _, err = w.sup.Query.Explain(t.Context(), "unknown")
		wantCode(t, err, agency.CodeRunNotFound)
	})
}

// A live run without a visible wrapper or terminal is idle when nothing else is known, until its
// wrapper is back. Connected runs need no query to tmux.
func TestUnseen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, p := w.started("fix-login")
		var looks atomic.Int64
		w.tmux.SessionsFunc = func() { looks.Add(1) }
		if err := os.Remove(filepath.Join(r.Worktree, agency.ContractFile)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * rescan)
		synctest.Wait()
		if got := w.label(r.ID); got != agency.Active || looks.Load() != 0 {
			t.Errorf("connected it is %s, after %d looks at tmux", got, looks.Load())
		}
		w.tmux.vanish(r.Session())
		w.sup.Wrappers.Disconnect(p.id, p.attempt, p.link)
		time.Sleep(rescan + time.Second)
		synctest.Wait()
		if got := w.label(r.ID); got != agency.Idle || looks.Load() == 0 {
			t.Errorf("unseen it is %s, after %d looks at tmux", got, looks.Load())
		}
		time.Sleep(stallThreshold)
		if got := w.label(r.ID); got != agency.Idle {
			t.Errorf("unseen for long it is %s", got)
		}
		if err := p.connect(); err != nil {
			t.Fatal(err)
		}
		if got := w.label(r.ID); got != agency.Stalled {
			t.Errorf("connected again it is %s", got)
		}
	})
}

// A run's own threshold is part of its record.
func TestOwnStallThreshold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		req := w.request("fix-login")
		req.Spec.Limits.StallAfterMS = time.Minute.Milliseconds()
		r, err := w.createRun(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		w.restart()
		if got := w.label(r.ID); got != agency.Stalled {
			t.Errorf("after a minute it is %s", got)
		}
		w.tmux.mu.Lock()
		p := w.wrappers[r.Session()]
		w.tmux.mu.Unlock()
		p.mustEnd(t, agency.Exit{EndedBy: agency.EndedByRunner})
	})
}

// A snapshot that is damaged or belongs to another run makes a run broken until it is repaired; the
// other runs are not affected.
func TestBroken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, other := w.ended("fix-login"), w.ended("other")
		meta := filepath.Join(r.Dir, "meta.json")
		right := mustRead(t, meta)
		for text, want := range map[string]string{
			mustRead(t, filepath.Join(other.Dir, "meta.json")): "meta.json is of another run",
			"{": "meta.json is damaged",
		} {
			mustWrite(t, meta, text)
			w.restart()
			synctest.Wait()
			if got := w.sup.Observer.Derive(w.run(r.ID)); got.Label != agency.Broken || got.Summary != want {
				t.Errorf("got %+v, want %q", got, want)
			}
		}
		if got := w.label(other.ID); got != agency.LabelCompleted {
			t.Errorf("the other run is %s", got)
		}
		mustWrite(t, meta, right)
		if _, e, _, err := w.sup.Query.Explain(t.Context(), "fix-login"); err != nil || e.Status.Label != agency.LabelCompleted {
			t.Errorf("put right it is %+v, %v", e.Status, err)
		}
		if err := os.Remove(meta); err != nil {
			t.Fatal(err)
		}
		w.restart()
		synctest.Wait()
		if got := w.label(r.ID); got != agency.LabelCompleted {
			t.Errorf("without a snapshot it is %s", got)
		}
	})
}
