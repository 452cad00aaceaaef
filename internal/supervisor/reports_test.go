package supervisor_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"agency"
	"agency/internal/contract"
)

// reported returns a line as agency report writes it.
func reported(report agency.Report, text string, quiet time.Duration) string {
	return fmt.Sprintf(`{"at":"2001-01-01T00:00:00Z","source":"report","signal":"report","report":%q,"text":%q,"quiet":%d}`+"\n", report, text, quiet)
}

// reports sets the content of the agent's file of reports, and lets the supervisor see it.
func (w *world) reports(r *agency.Run, text string) {
	w.t.Helper()
	path := filepath.Join(r.Worktree, agency.ReportsFile)
	mustWrite(w.t, path, text)
	w.watcher.hints <- path
	synctest.Wait()
}

// An agent that announced a quiet time is not stalled during it, and is after it.
func TestQuietTime(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		declared, quiet time.Duration
	}{
		"20 minutes":        {stallThreshold + 5*time.Minute, stallThreshold + 5*time.Minute},
		"none":              {0, stallThreshold},
		"less than nothing": {-time.Hour, stallThreshold},
		"for ever":          {1 << 62, agency.MaxQuiet},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			r, _ := w.started("fix-login")
			time.Sleep(time.Minute)
			w.reports(r, reported(agency.ReportsStatus, "Running all tests", test.declared))
			time.Sleep(test.quiet - time.Second)
			if got := w.label(r.ID); got != agency.Active {
				t.Errorf("%s: %s before its end", name, got)
			}
			time.Sleep(2 * time.Second)
			if got := w.label(r.ID); got != agency.Stalled {
				t.Errorf("%s: %s after its end", name, got)
			}
		})
	}
}

// Reports are read once each while the file grows, is cut off in the middle of a line, or is
// started again.
func TestReportsFileChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, p := w.started("fix-login")
		want := func(what string, label agency.Label, summary string) {
			t.Helper()
			if got := w.sup.Observer.Derive(w.run(r.ID)); got.Label != label || got.Summary != summary {
				t.Errorf("%s: got %s %q", what, got.Label, got.Summary)
			}
		}
		help, done := reported(agency.ReportsHelp, "Look at one", 0), reported(agency.ReportsComplete, "All is done", 0)
		w.reports(r, help)
		want("the first", agency.NeedsInput, "Look at one")
		w.reports(r, help+done[:20])
		want("half a line", agency.NeedsInput, "Look at one")
		w.reports(r, help+done)
		want("the other half", agency.ReadyForReview, "All is done")
		w.reports(r, help)
		want("a shorter file", agency.NeedsInput, "Look at one")
		if err := os.Remove(filepath.Join(r.Worktree, agency.ReportsFile)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(rescan)
		synctest.Wait()
		want("no file", agency.NeedsInput, "Look at one")
		w.reports(r, strings.ReplaceAll(help, "one", "two"))
		want("another of the same length", agency.NeedsInput, "Look at two")
		w.reports(r, "no report\n"+reported("applause", "Well done", 0)+"\x00\xff\n")
		want("what is no report", agency.NeedsInput, "Look at two")

		lines := func() int {
			return strings.Count(mustRead(t, filepath.Join(p.dir, agency.EventsFile)), "\n")
		}
		before := lines()
		w.restart()
		if err := p.connect(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if after := lines(); after != before {
			t.Errorf("a restart took over %d reports again", after-before)
		}
	})
}

// A report that could not be stored on a full disk is taken over later, once, and its owner is
// notified once.
func TestReportsAreTakenAgain(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(w *world, events string) (repair func()){
		"no evidence": func(w *world, events string) func() {
			if err := os.Symlink("/nowhere", events); err != nil {
				w.t.Fatal(err)
			}
			return func() { _ = os.Remove(events) }
		},
		"no message": func(w *world, _ string) func() {
			disk := fullDisk()
			w.store.SendMessageErr = disk.err
			return func() { disk.full.Store(false) }
		},
		"no record": func(w *world, _ string) func() {
			disk := fullDisk()
			w.store.ChangeRunErr = disk.err
			return func() { disk.full.Store(false) }
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			r, p := w.started("fix-login")
			events := filepath.Join(p.dir, agency.EventsFile)
			repair := fail(w, events)
			help := reported(agency.ReportsHelp, "Look at one", 0)
			w.reports(r, help)
			w.reports(r, help+reported(agency.ReportsComplete, "All is done", 0))
			if got := w.label(r.ID); got != agency.Active {
				t.Errorf("%s: got %s", name, got)
			}
			repair()
			time.Sleep(rescan)
			synctest.Wait()
			if got := w.label(r.ID); got != agency.ReadyForReview {
				t.Errorf("%s: got %s after a rescan", name, got)
			}
			if got := strings.Count(mustRead(t, events), `"signal":"report"`); got != 2 {
				t.Errorf("%s: took over %d reports", name, got)
			}
			messages, err := w.store.Messages(t.Context(), agency.MessageFilter{Recipient: agency.User})
			if err != nil || len(messages) != 2 {
				t.Errorf("%s: sent %+v, %v", name, messages, err)
			}
		})
	}
}

// Whatever is in the place of the reports, it is never followed, waited for or read whole; it is
// counted, the next good file is read, and the attempt can end.
func TestHostileReports(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]func(path, external string) error{
		"a link":      func(path, external string) error { return os.Symlink(external, path) },
		"a pipe":      func(path, _ string) error { return syscall.Mkfifo(path, 0o600) },
		"a folder":    func(path, _ string) error { return os.Mkdir(path, 0o700) },
		"a device":    func(path, _ string) error { return os.Symlink("/dev/zero", path) },
		"a huge file": func(path, _ string) error { return os.WriteFile(path, make([]byte, agency.ReportsLimit+1), 0o600) },
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			r, p := w.started("fix-login")
			external := filepath.Join(t.TempDir(), "outside")
			mustWrite(t, external, reported(agency.ReportsHelp, "From outside", 0))
			path := filepath.Join(r.Worktree, agency.ReportsFile)
			if err := put(path, external); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				w.watcher.hints <- path
				synctest.Wait()
			}
			if got := w.label(r.ID); got != agency.Active {
				t.Errorf("%s: %s", name, got)
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			w.reports(r, reported(agency.ReportsHelp, "I am stuck", 0))
			if got := w.label(r.ID); got != agency.NeedsInput {
				t.Errorf("%s: %s after a good file", name, got)
			}
			if got := w.run(r.ID).Attempt.AgentState.Unknown; len(got) != 1 {
				t.Errorf("%s: got %v", name, got)
			}
			for _, rel := range []string{agency.ReportsFile, agency.ContractFile} {
				path := filepath.Join(r.Worktree, rel)
				if err := errors.Join(os.RemoveAll(path), put(path, external)); err != nil {
					t.Fatal(err)
				}
			}
			p.mustEnd(t, agency.Exit{EndedBy: agency.EndedByRunner})
			if got := w.run(r.ID).Attempt.State; got != agency.Completed {
				t.Errorf("%s: it is %s after its end", name, got)
			}
		})
	}
}

// The reports of an older attempt are kept beside its logs and describe no other attempt, however
// late the supervisor reads them.
func TestOldReportsAreArchived(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r := w.ended("fix-login")
		// After the end, when they are no longer read.
		help := reported(agency.ReportsHelp, "Too late", 0)
		mustWrite(t, filepath.Join(r.Worktree, agency.ReportsFile), help)
		mustWrite(t, filepath.Join(r.Worktree, agency.ContractFile), asking("Too late?"))
		w.store.SetTokenFunc = func() error { time.Sleep(2 * rescan); return nil }
		w.resume("fix-login")
		time.Sleep(rescan)
		synctest.Wait()
		now := w.run(r.ID)
		if got := w.label(r.ID); got != agency.Active || now.Attempt.AgentState.Reported != nil || w.count(r.ID, agency.ContractChanged) != 0 {
			t.Errorf("got %s, %+v", got, now.Attempt.AgentState)
		}
		if got := mustRead(t, filepath.Join(r.Dir, "attempts", "1", "reports.jsonl")); got != help {
			t.Errorf("archived: got %q", got)
		}
		if got := mustRead(t, filepath.Join(r.Worktree, agency.AttemptFile)); got != "2\n" {
			t.Errorf("the attempt in the worktree: got %q", got)
		}
	})
}

// Whatever is in the place of an agent's status files, another attempt can begin.
func TestResumeInAHostileWorktree(t *testing.T) {
	t.Parallel()
	for _, rel := range []string{agency.ContractFile, agency.ReportsFile} {
		for name, put := range map[string]func(path string) error{
			"a folder": func(path string) error { return os.MkdirAll(filepath.Join(path, "full"), 0o700) },
			"a pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
			"a link":   func(path string) error { return os.Symlink("/dev/zero", path) },
			"nothing":  func(string) error { return nil },
		} {
			t.Run(filepath.Base(rel)+" is "+name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				r := w.ended("fix-login")
				path := filepath.Join(r.Worktree, rel)
				if err := os.RemoveAll(path); err != nil {
					t.Fatal(err)
				}
				if err := put(path); err != nil {
					t.Fatal(err)
				}
				if _, err := w.sup.ResumeRun(t.Context(), w.resumeRequest("fix-login")); err != nil {
					t.Error(err)
				}
				if _, err := contract.Parse([]byte(mustRead(t, filepath.Join(r.Worktree, agency.ContractFile)))); err != nil {
					t.Error(err)
				}
			})
		}
	}
	t.Run("the folder is a link", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		r := w.ended("fix-login")
		external, state := t.TempDir(), filepath.Join(r.Worktree, agency.StateDir)
		if err := os.RemoveAll(state); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(external, state); err != nil {
			t.Fatal(err)
		}
		_, err := w.sup.ResumeRun(t.Context(), w.resumeRequest("fix-login"))
		wantCode(t, err, agency.CodeInvalidPath)
		if !strings.Contains(err.Error(), state) {
			t.Errorf("it does not name the place: %v", err)
		}
		if left, err := os.ReadDir(external); err != nil || len(left) != 0 {
			t.Errorf("written outside: %v, %v", left, err)
		}
	})
}
