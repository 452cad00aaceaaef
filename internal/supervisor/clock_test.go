package supervisor_test

import (
	"os"
	"path/filepath"
	"runtime"
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

// While the daemon's clock is ahead, hooks and wrappers report times of the system's clock. The agent
// still counts as active, its question comes after the message before it, and a time that the wrapper
// repeats does not count as activity.
func TestAgentWhenTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.sup.Stop()
		*w.ahead = time.Hour
		w.start()
		r, p := w.started("fix-login")
		w.tell(p, agency.Evidence{Signal: agency.SignalPrompt})
		for range 5 {
			time.Sleep(stallThreshold / 3)
			w.tell(p, agency.Evidence{Signal: agency.SignalToolStarted, ID: "1", Tool: "Bash"}, agency.Evidence{Signal: agency.SignalToolEnded, ID: "1"})
			w.sup.Observer.ReadEvidence(t.Context(), r.ID)
			if got := w.label(r.ID); got != agency.Working {
				t.Errorf("after a tool it is %s", got)
			}
		}
		w.restart()
		if got := w.label(r.ID); got != agency.Working {
			t.Errorf("after a restart it is %s", got)
		}
		if err := p.connect(); err != nil {
			t.Fatal(err)
		}
		printed := time.Now()
		for range 2 {
			time.Sleep(time.Minute)
			if err := w.sup.Wrappers.Update(t.Context(), r.ID, 1, agency.WrapperUpdate{Output: new(time.Now()), Changed: &printed}); err != nil {
				t.Fatal(err)
			}
			if seen, _ := w.sup.Observer.Seen(r.ID); !seen.OutputChanged.Equal(w.convert(printed)) || !seen.OutputAt.Equal(w.now()) {
				t.Errorf("at %v it printed at %v, something new at %v", w.now(), seen.OutputAt, seen.OutputChanged)
			}
		}
		if _, _, err := w.sup.Input.Send(t.Context(), "fix-login", "hello", ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		w.tell(p, agency.Evidence{Source: agency.FromReport, Signal: agency.SignalReport, Report: agency.ReportsHelp, Text: "Which?"})
		w.sup.Observer.ReadEvidence(t.Context(), r.ID)
		if got := w.label(r.ID); got != agency.NeedsInput {
			t.Errorf("with a question it is %s", got)
		}
	})
}

// While the daemon's clock is ahead, a question in a status file counts that came after the prompt.
func TestStatusFileWhenTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sup.Stop()
	*w.ahead = time.Hour
	w.start()
	r, p := w.started("fix-login")
	path := filepath.Join(r.Worktree, agency.ContractFile)
	until := func(what string, is func() bool) {
		t.Helper()
		w.watcher.hints <- path
		for end := time.Now().Add(time.Minute); !is(); runtime.Gosched() {
			if time.Now().After(end) {
				t.Fatal("it is never so: ", what)
			}
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	until("no status", func() bool { return w.run(r.ID).Attempt.Reported.Contract == nil })
	w.tell(p, agency.Evidence{Signal: agency.SignalPrompt})
	w.sup.Observer.ReadEvidence(t.Context(), r.ID)
	w.writtenAfter(path, asking("Which?"), time.Now())
	until("a question", func() bool { return w.label(r.ID) == agency.NeedsInput })
}
