package crash_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"agency"
	"agency/internal/runner"
	"agency/internal/sqlite"
	"agency/test/fixture"
)

// reboot ends every process of agency, its runners and its tmux server at once, and changes the
// kernel's boot id.
func (w *processes) reboot() {
	w.t.Helper()
	// A wrapper would record the end of the other processes, but a machine that loses its power
	// writes nothing.
	seen := w.scene()
	all := seen.daemons
	for _, group := range []map[string][]int{seen.wrappers, seen.marked} {
		for _, pids := range group {
			all = append(all, pids...)
		}
	}
	all = append(all, seen.tmux...)
	w.kill(all)
	w.awaitDeath(all)
	w.write("killpoint.boot", "11111111-2222-4333-8444-555555555555\n")
}

// seq returns the number of the newest event.
func (w *client) seq() int64 {
	w.t.Helper()
	var page struct {
		LastSeq int64 `json:"last_seq"`
	}
	if err := w.data(&page, "events", "--since", "1000000000"); err != nil {
		w.t.Fatal(err)
	}
	return page.LastSeq
}

// After a reboot no attempt shows as alive; each has ended once, keeps its last known state, and
// can be resumed.
func TestReboot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	runTarget(w)
	w.must("run", "--name", "done", "--headless", "--prompt", "ready finished | make test")
	w.must("wait", "done", "--for", "ready-for-review", "--timeout", "20s")
	w.await("the end", func() bool { return w.run("done").State == "completed" })
	// One attempt ends while no daemon runs, one is being stopped, and one has only just been
	// requested.
	w.must("run", "--name", "late", "--headless", "--prompt", "wait-file "+w.path("go"))
	w.must("run", "--name", "stopping", "--prompt", "ignore-term\nask never?")
	w.must("wait", "stopping", "other", "target", "--for", "needs-input", "--timeout", "20s")
	stopped := make(chan fixture.Result, 1)
	go func() { stopped <- w.f.Agency("stop", "stopping") }()
	w.await("the stop", func() bool { return strings.Contains(w.must("events", "--run", "stopping"), "attempt.stopping") })
	w.hold("wrapper.forked", "run", "--name", "asked", "--prompt", asks)
	late := filepath.Join(w.run("late").Dir, "runner_done.json")
	w.kill(w.daemons())
	w.write("go", "")
	w.await("the exit record", func() bool { _, err := os.Stat(late); return err == nil })
	w.reboot()
	w.release()
	w.awaitClient()
	<-stopped

	if wrong := w.rest(true); len(wrong) > 0 {
		t.Fatal(strings.Join(wrong, "\n"))
	}
	for name, want := range map[string]string{
		"other": "failed E_RUNNER_DISAPPEARED", "target": "failed E_RUNNER_DISAPPEARED", "stopping": "killed ",
		"done": "completed ", "late": "completed ", "asked": "failed E_START_CUT_OFF",
	} {
		if r := w.run(name); r.State+" "+r.ErrorCode != want {
			t.Errorf("%s is %s %s (%s), want %s", name, r.State, r.ErrorCode, r.Error, want)
		}
	}
	if text := w.must("show", "target"); !strings.Contains(text, "ready?") || !strings.Contains(text, "the runner disappeared") || !strings.Contains(text, ", last output ") {
		t.Errorf("its last word, its loss and when it was last active are not in:\n%s", text)
	}
	if logs := w.must("logs", "target"); !strings.Contains(logs, "? ready?") {
		t.Errorf("its last output is not in %q", logs)
	}
	w.twice()
	w.must("resume", "--all-lost")
	if r := w.run("target"); r.Attempt != 1 {
		t.Errorf("a look resumed it")
	}
	w.must("resume", "--all-lost", "--yes")
	for _, name := range []string{"target", "other"} {
		if r := w.run(name); r.State != "running" || r.Attempt != 2 {
			t.Errorf("%s is %s in attempt %d", name, r.State, r.Attempt)
		}
	}
	w.calm(false)
}

// twice restarts the daemon again and again, which must change nothing.
func (w *processes) twice() {
	w.t.Helper()
	before, err := w.runs()
	if err != nil {
		w.t.Fatal(err)
	}
	seq := w.seq()
	w.must("daemon", "stop")
	w.must("daemon", "start")
	after, err := w.runs()
	if err != nil {
		w.t.Fatal(err)
	}
	if !reflect.DeepEqual(before, after) {
		w.t.Errorf("settled again:\n%v\n%v", before, after)
	}
	if now := w.seq(); now != seq+2 { // the end of one daemon and the start of another
		w.t.Errorf("%d events came of a second start", now-seq)
	}
}

// A pid that belongs to another process by now is neither the runner nor the wrapper: the attempt
// is lost, and that process is not touched.
func TestReusedPID(t *testing.T) {
	t.Parallel()
	for name, disguise := range map[string]func(p *agency.Process){
		"started at another time": func(p *agency.Process) { p.StartTicks-- },
		"of another boot":         func(p *agency.Process) { p.BootID = "11111111-2222-4333-8444-555555555555" },
		"of no known time":        func(p *agency.Process) { p.StartTicks = 0 },
	} {
		if !whole && name != "of another boot" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			runTarget(w)
			bystander := exec.Command("sleep", "600")
			if err := bystander.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = bystander.Process.Kill(); _ = bystander.Wait() })
			as, err := runner.Identify(bystander.Process.Pid)
			if err != nil {
				t.Fatal(err)
			}
			disguise(&as)
			r := w.run("target")
			dead := slices.Concat(w.daemons(), w.wrapper(r.ID), w.marked(r.ID))
			w.kill(dead)
			w.awaitDeath(dead)
			w.impersonate(r, as)

			if now := w.run("target"); now.State != "failed" || now.ErrorCode != "E_RUNNER_DISAPPEARED" {
				t.Errorf("it is %s %s", now.State, now.ErrorCode)
			}
			if r := w.f.Agency("stop", "target"); r.Exit != 0 || !strings.Contains(r.Stdout, "had ended already") {
				t.Errorf("stop: exit %d: %s", r.Exit, r.Stderr)
			}
			w.must("rm", "target")
			if _, err := runner.Identify(bystander.Process.Pid); err != nil {
				t.Errorf("the other process was ended: %v", err)
			}
			w.calm(false)
		})
	}
}

// impersonate replaces the process in the record and the start record of a run by another one,
// while no daemon runs.
func (w *processes) impersonate(r *runView, as agency.Process) {
	w.t.Helper()
	ctx := context.Background()
	store, err := sqlite.Open(ctx, filepath.Join(w.f.Data, "agency.db"), time.Now)
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = store.ChangeRun(ctx, agency.RunID(r.ID), func(r *agency.Run) ([]agency.EventDraft, error) {
		r.Attempt.Wrapper, r.Attempt.RunnerProcess = &as, &as
		return nil, nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		w.t.Fatal(err)
	}
	path := filepath.Join(r.Dir, "attempts", "1", "started.json")
	start, err := runner.ReadStart(filepath.Dir(path))
	if err != nil || start == nil {
		w.t.Fatalf("read the start record: %v", err)
	}
	start.Wrapper, start.Runner = as, as
	w.writeJSON(path, start)
}
