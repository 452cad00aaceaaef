package supervisor_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agency"
)

const (
	filled = "# Report\n\n## Summary\n\nRefuses expired sessions.\n"
	ready  = `{"schema_version":"1.0","status":"ready_for_review","summary":"Done","how_to_test":"make test"}`
)

// outputOf returns the output of the run; empty when there is none.
func (w *world) outputOf(r *agency.Run) string {
	w.t.Helper()
	_, details, err := w.sup.Query.Show(w.t.Context(), string(r.ID))
	if err != nil {
		w.t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(r.Dir, "output.md"))
	if exists := err == nil; exists != (details.OutputPath != "") {
		w.t.Errorf("output.md is there: %v, and show names %q", exists, details.OutputPath)
	}
	return string(data)
}

func TestOutputOfAnEndedAttempt(t *testing.T) {
	t.Parallel()
	answer := func(w *world, p *wrapper) {
		w.tell(p,
			agency.Evidence{Signal: agency.SignalTurnEnded, Text: "the first"},
			agency.Evidence{Signal: agency.SignalTurnEnded, Text: "the last\nof two lines"},
			agency.Evidence{Signal: agency.SignalTurnEnded, Text: "a helper's", Subagent: "h"},
			agency.Evidence{Signal: agency.SignalEnded})
	}
	for name, test := range map[string]struct {
		do   func(w *world, p *wrapper, report string)
		want string
	}{
		"nothing":   {func(*world, *wrapper, string) {}, ""},
		"an answer": {func(w *world, p *wrapper, _ string) { answer(w, p) }, "the last\nof two lines\n"},
		"a report":  {func(w *world, _ *wrapper, report string) { mustWrite(w.t, report, filled) }, filled},
		"both":      {func(w *world, p *wrapper, report string) { answer(w, p); mustWrite(w.t, report, filled) }, filled},
		"an unfilled one": {func(w *world, p *wrapper, report string) {
			answer(w, p)
			mustWrite(w.t, report, "# Report\n<!-- what -->\n")
		}, "the last\nof two lines\n"},
		"one that is huge": {func(w *world, p *wrapper, report string) {
			answer(w, p)
			mustWrite(w.t, report, strings.Repeat("x", 2<<20))
		}, "the last\nof two lines\n"},
		"a folder as report": {func(w *world, _ *wrapper, report string) {
			if err := os.RemoveAll(report); err != nil {
				w.t.Fatal(err)
			}
			mustWrite(w.t, filepath.Join(report, "x"), filled)
		}, ""},
		"a link as report": {func(w *world, _ *wrapper, report string) {
			secret := filepath.Join(w.t.TempDir(), "secret")
			mustWrite(w.t, secret, "a key")
			if err := os.Remove(report); err != nil {
				w.t.Fatal(err)
			}
			if err := os.Symlink(secret, report); err != nil {
				w.t.Fatal(err)
			}
		}, ""},
		"half a line of evidence": {func(w *world, p *wrapper, _ string) {
			mustWrite(w.t, filepath.Join(p.dir, agency.EventsFile), `{"source":"hook","signal":"turn_ended","text":"no e`)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r, p := w.started("fix-login")
			test.do(w, p, filepath.Join(r.Worktree, agency.ReportFile))
			p.mustEnd(t, agency.Exit{EndedBy: agency.EndedByRunner})
			if got := w.outputOf(r); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// The kernel's clock sets the time of a report, and may be behind the daemon's.
func TestOutputWhenTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sup.Stop()
	*w.ahead = time.Hour
	w.start()
	r, p := w.started("fix-login")
	report := filepath.Join(r.Worktree, agency.ReportFile)
	for attempt, test := range []struct{ report, want string }{
		{filled, filled}, {filled + "Again.\n", filled + "Again.\n"}, {"", "answer 3\n"},
	} {
		if attempt > 0 {
			w.tick(report)
			p = w.resume("fix-login")
		}
		if test.report != "" {
			mustWrite(t, report, test.report)
		}
		if attempt == 0 { // as if the clock was set back only now: the attempt seems to have begun after its report
			w.tick(report)
			if err := errors.Join(os.Remove(filepath.Join(r.Dir, "logs")), os.Symlink("attempts/1/logs", filepath.Join(r.Dir, "logs"))); err != nil {
				t.Fatal(err)
			}
		}
		w.tell(p, agency.Evidence{Signal: agency.SignalTurnEnded, Text: fmt.Sprint("answer ", attempt+1)})
		p.mustEnd(t, agency.Exit{EndedBy: agency.EndedByRunner})
		if got := w.outputOf(r); got != test.want {
			t.Errorf("attempt %d: got %q, want %q", attempt+1, got, test.want)
		}
	}
}

// tick returns when a file written now has a later time than path.
func (w *world) tick(path string) {
	w.t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		w.t.Fatal(err)
	}
	w.writtenAfter(filepath.Join(w.t.TempDir(), "tick"), "", info.ModTime())
}

// writtenAfter writes a file until its times, which are those of the kernel's last tick, are after
// at.
func (w *world) writtenAfter(path, content string, at time.Time) {
	w.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		mustWrite(w.t, path, content)
		if info, err := os.Stat(path); err == nil && info.ModTime().After(at) {
			return
		}
	}
	w.t.Fatalf("%s is never younger than %s", path, at)
}

// The end of the evidence is enough when there is more than is searched.
func TestOutputBehindMuchEvidence(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, p := w.started("fix-login")
	noise := strings.Repeat(`{"source":"hook","signal":"tool_started","id":"1"}`+"\n", 200_000)
	mustWrite(t, filepath.Join(p.dir, agency.EventsFile), noise)
	w.tell(p, agency.Evidence{Signal: agency.SignalTurnEnded, Text: "done"})
	p.mustEnd(t, agency.Exit{EndedBy: agency.EndedByRunner})
	if got := w.outputOf(r); got != "done\n" {
		t.Errorf("got %q", got)
	}
}

// A report is the output as soon as the agent offers its work; an answer is the output when its
// turn ends.
func TestOutputOfAnOffer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		report string
		offer  func(w *world, r *agency.Run)
		want   [2]string // at the offer, at the turn's end
	}{
		"ready with a report": {filled, offerReady, [2]string{filled, filled}},
		"ready without":       {"", offerReady, [2]string{"", "It is done\n"}},
		"complete":            {filled, offerComplete, [2]string{filled, filled}},
		"complete without":    {"", offerComplete, [2]string{"", "It is done\n"}},
		"no offer":            {filled, func(*world, *agency.Run) {}, [2]string{"", ""}},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			r, p := w.started("fix-login")
			events := filepath.Join(p.dir, agency.EventsFile)
			w.tell(p, agency.Evidence{Signal: agency.SignalPrompt})
			w.watcher.hints <- events
			synctest.Wait()
			mustWrite(t, filepath.Join(r.Worktree, agency.ReportFile), test.report)
			test.offer(w, r)
			if got := w.outputOf(r); got != test.want[0] {
				t.Errorf("%s: got %q at the offer", name, got)
			}
			w.tell(p, agency.Evidence{Signal: agency.SignalTurnEnded, Text: "It is done"})
			w.watcher.hints <- events
			synctest.Wait()
			if got := w.outputOf(r); got != test.want[1] {
				t.Errorf("%s: got %q at the turn's end", name, got)
			}
		})
	}
}

func offerReady(w *world, r *agency.Run) {
	path := filepath.Join(r.Worktree, agency.ContractFile)
	mustWrite(w.t, path, ready)
	w.watcher.hints <- path
	synctest.Wait()
}

func offerComplete(w *world, r *agency.Run) { w.reports(r, reported(agency.ReportsComplete, "", 0)) }

// The report of an older attempt does not replace the answer of a newer one.
func TestOutputOfALaterAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, p := w.started("fix-login")
	report := filepath.Join(r.Worktree, agency.ReportFile)
	mustWrite(t, report, filled)
	p.mustEnd(t, agency.Exit{EndedBy: agency.EndedByRunner})
	w.tick(report) // otherwise the next attempt could begin at the same time of the kernel's clock
	p = w.resume("fix-login")
	w.tell(p, agency.Evidence{Signal: agency.SignalTurnEnded, Text: "Fixed the typo"})
	p.mustEnd(t, agency.Exit{EndedBy: agency.EndedByRunner})
	if got := w.outputOf(r); got != "Fixed the typo\n" {
		t.Errorf("got %q", got)
	}
}
