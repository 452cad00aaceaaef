package supervisor_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"agency"
)

const atWork = `{"schema_version":"1.0","status":"working","updated_at":"","summary":"Testing","questions":[],"blockers":[],"how_to_test":"","risks":[]}`

// says replaces the agent's status file, and lets the supervisor see it.
func (w *world) says(r *agency.Run, text string) {
	w.t.Helper()
	path := filepath.Join(r.Worktree, agency.ContractFile)
	w.writeWord(path, text)
	w.watcher.hints <- path
	synctest.Wait()
}

func (w *world) writeWord(path, text string) {
	w.t.Helper()
	mustWrite(w.t, path+".new", text)
	if err := os.Rename(path+".new", path); err != nil {
		w.t.Fatal(err)
	}
}

// disk takes nothing while it is full.
type disk struct{ full atomic.Bool }

func fullDisk() *disk {
	d := &disk{}
	d.full.Store(true)
	return d
}

func (d *disk) err() error {
	if d.full.Load() {
		return errors.New("the disk is full")
	}
	return nil
}

// A status that could not be recorded is read again by the next rescan.
func TestStatusFileIsReadAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, _ := w.started("fix-login")
		disk := fullDisk()
		w.store.ChangeRunErr = disk.err
		w.says(r, asking("Which one?"))
		disk.full.Store(false)
		if got := w.label(r.ID); got != agency.Active {
			t.Errorf("got %s", got)
		}
		time.Sleep(rescan)
		synctest.Wait()
		if got := w.label(r.ID); got != agency.NeedsInput {
			t.Errorf("got %s after a rescan", got)
		}
	})
}

// noDescriptors lets this process open no file until undo is called.
func noDescriptors(t *testing.T) (undo func()) {
	t.Helper()
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	limit := func(l syscall.Rlimit) {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() { limit(before) })
	limit(syscall.Rlimit{Max: before.Max})
	return func() { limit(before) }
}

// What the system fails to read is not the word of the agent: the last word stays until the next one
// can be read.
func TestFilesThatCannotBeReadYet(t *testing.T) { //nolint:paralleltest // it limits the whole process
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, _ := w.started("fix-login")
		path := filepath.Join(r.Worktree, agency.ContractFile)
		w.says(r, atWork)
		w.writeWord(path, asking("Which one?"))
		undo := noDescriptors(t)
		w.watcher.hints <- path
		time.Sleep(time.Second) // one reading tries several times
		undo()
		if got := w.label(r.ID); got != agency.Working {
			t.Errorf("got %s before the file can be read", got)
		}
		time.Sleep(rescan)
		synctest.Wait()
		if got := w.label(r.ID); got != agency.NeedsInput {
			t.Errorf("got %s after a rescan", got)
		}
	})
}

// An attempt ends in the record when the system can read what its agent wrote last.
func TestLastFilesThatCannotBeReadYet(t *testing.T) { //nolint:paralleltest // it limits the whole process
	for state, end := range map[agency.State]func(w *world, p *wrapper){
		agency.Completed: func(_ *world, p *wrapper) {
			err := p.end(agency.Exit{EndedBy: agency.EndedByRunner})
			if !errors.Is(err, syscall.EMFILE) {
				t.Errorf("its wrapper was told: %v", err)
			}
		},
		agency.Failed: func(w *world, p *wrapper) {
			w.attempts.change(p.dir, func(h *onHost) { h.locked = false })
			w.sup.Wrappers.Disconnect(p.id, p.attempt, p.link)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			r, p := w.started("fix-login")
			w.says(r, asking("Which one?"))
			w.writeWord(filepath.Join(r.Worktree, agency.ContractFile), atWork)
			mustWrite(t, filepath.Join(r.Worktree, agency.ReportsFile), reported(agency.ReportsComplete, "All is done", 0))
			undo := noDescriptors(t)
			end(w, p)
			time.Sleep(time.Second)
			undo()
			if got := w.run(r.ID).Attempt.State; got != agency.Running {
				t.Errorf("%s before the files can be read", got)
			}
			time.Sleep(time.Minute)
			a := w.run(r.ID).Attempt
			if c, said := a.Reported.Contract, a.AgentState.Reported; a.State != state || c == nil || c.Summary != "Testing" || said == nil || said.Text != "All is done" {
				t.Errorf("at the end: %s, want %s; %+v, %+v", a.State, state, a.Reported, said)
			}
		})
	}
}

// A question that the agent repeats after the answer counts as new; the same file written again
// does not.
func TestStatusFileIsRepeated(t *testing.T) {
	t.Parallel()
	later := `{"schema_version":"1.0","status":"needs_input","updated_at":"later","summary":"s","questions":["Which one?"],"blockers":[],"how_to_test":"","risks":[]}`
	for name, see := range map[string]func(w *world, r *agency.Run, text string){
		"by a hint": (*world).says,
		"by a rescan": func(w *world, r *agency.Run, text string) {
			w.writeWord(filepath.Join(r.Worktree, agency.ContractFile), text)
			time.Sleep(rescan)
			synctest.Wait()
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			r, _ := w.started("fix-login")
			see(w, r, asking("Which one?"))
			first := w.sup.Observer.Derive(w.run(r.ID)).PromptID()
			time.Sleep(time.Minute)
			for _, text := range []string{asking("Which one?"), later} {
				see(w, r, text)
			}
			if got := w.sup.Observer.Derive(w.run(r.ID)).PromptID(); got != first || w.count(r.ID, agency.ContractChanged) != 1 {
				t.Errorf("%s: one question became %q and %q", name, first, got)
			}
			if _, _, err := w.sup.Input.Send(t.Context(), r.Handle, "left", first); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			w.watcher.hints <- filepath.Join(r.Worktree, agency.ReportsFile) // something else in the folder
			synctest.Wait()
			if got := w.label(r.ID); got != agency.Working {
				t.Errorf("%s: %s after an answer", name, got)
			}
			see(w, r, asking("Which one?"))
			if got := w.sup.Observer.Derive(w.run(r.ID)); got.Label != agency.NeedsInput || got.PromptID() == first || w.count(r.ID, agency.ContractChanged) != 2 {
				t.Errorf("%s: got %+v after the same question", name, got)
			}
		})
	}
}

// A status file that comes back unchanged keeps its age: a later report of the agent is newer.
func TestAnOldStatusFileReturns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, _ := w.started("fix-login")
	state := filepath.Join(r.Worktree, agency.StateDir)
	look := func() {
		for range 2 { // the second is taken when the first is done
			w.watcher.hints <- filepath.Join(state, "anything")
		}
	}
	contract, reports := filepath.Join(r.Worktree, agency.ContractFile), filepath.Join(r.Worktree, agency.ReportsFile)
	w.writeWord(contract, asking("Which one?"))
	look()
	w.tick(contract)
	for _, move := range [][2]string{{state, state + ".aside"}, {state + ".aside", state}} {
		if err := os.Rename(move[0], move[1]); err != nil {
			t.Fatal(err)
		}
		if move[1] == state {
			mustWrite(t, reports, reported(agency.ReportsHelp, "It is back", 0))
			w.tick(reports)
		}
		look()
	}
	if got := w.sup.Observer.Derive(w.run(r.ID)); got.Label != agency.NeedsInput || got.Summary != "It is back" {
		t.Errorf("got %s %q", got.Label, got.Summary)
	}
}

// An agent that repeats that it is working stays active, and creates no events.
func TestWorkingIsRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, _ := w.started("fix-login")
		for range 4 {
			w.says(r, atWork)
			time.Sleep(stallThreshold - time.Minute)
			if got := w.label(r.ID); got != agency.Working {
				t.Errorf("got %s", got)
			}
		}
		if got := w.count(r.ID, agency.ContractChanged); got != 1 {
			t.Errorf("%d events", got)
		}
		time.Sleep(2 * time.Minute)
		if got := w.label(r.ID); got != agency.Stalled {
			t.Errorf("got %s after silence", got)
		}
	})
}

// What an agent repeats while no daemon runs is read by the next one, once.
func TestStatusFileIsRepeatedWithoutADaemon(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, p := w.started("fix-login")
	path := filepath.Join(r.Worktree, agency.ContractFile)
	answer := func(want int) {
		t.Helper()
		for end := time.Now().Add(time.Minute); w.label(r.ID) != agency.NeedsInput || w.count(r.ID, agency.ContractChanged) != want; {
			if time.Now().After(end) {
				t.Fatalf("got %s and %d events, want question %d", w.label(r.ID), w.count(r.ID, agency.ContractChanged), want)
			}
		}
		if _, _, err := w.sup.Input.Send(t.Context(), "fix-login", "left", ""); err != nil {
			t.Fatal(err)
		}
	}
	again := func() {
		t.Helper()
		w.start()
		if err := p.connect(); err != nil { // which reads what was written before
			t.Fatal(err)
		}
	}
	w.writeWord(path, asking("Which one?"))
	w.watcher.hints <- path
	answer(1)
	w.sup.Stop()
	w.writtenAfter(path, asking("Which one?"), *w.run(r.ID).Attempt.InputAt)
	again()
	answer(2)
	w.sup.Stop()
	again()
	if got := w.label(r.ID); got != agency.Working || w.count(r.ID, agency.ContractChanged) != 2 {
		t.Errorf("an answered question: got %s and %d events", got, w.count(r.ID, agency.ContractChanged))
	}
}
