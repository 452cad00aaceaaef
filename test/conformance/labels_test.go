package conformance_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agency"
	"agency/internal/api"
	shared "agency/test/fixture"
)

// bin is the folder of the binary that TestMain built.
var bin string

// TestMain builds agency once, where the agents are there to run under it.
func TestMain(m *testing.M) {
	if os.Getenv("AGENCY_AGENTS") == "" {
		os.Exit(m.Run())
	}
	os.Exit(shared.Run(m, &bin))
}

// installed returns the binary of agency and the agent, or skips the test.
func installed(t *testing.T, runner string) (binary string, a agent) {
	t.Helper()
	dir := os.Getenv("AGENCY_AGENTS")
	if dir == "" {
		t.Skip("make conformance runs this; it installs the agents with npm and sets AGENCY_AGENTS to their folder")
	}
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed: make deps")
	}
	all := agents(t, dir)
	a = all[slices.IndexFunc(all, func(a agent) bool { return a.runner == runner })]
	if _, err := exec.LookPath(a.program); err != nil {
		t.Skipf("%s is not installed: sh scripts/agents.sh %s", a.program, dir)
	}
	return filepath.Join(bin, "agency"), a
}

// timeline records what agency shows of one run, label after label, as a user sees it who watches
// the list.
type timeline struct {
	t       *testing.T
	mu      sync.Mutex
	runs    []api.Run // one for each change of the label
	changed chan struct{}
	next    int // the first one that no await has passed
}

// watch follows a run until the test ends.
func (f *fixture) watch(run api.Run) *timeline {
	f.t.Helper()
	tl := &timeline{t: f.t, changed: make(chan struct{}), runs: []api.Run{run}}
	ctx, cancel := context.WithCancel(context.WithoutCancel(f.t.Context()))
	cmd := exec.CommandContext(ctx, f.binary, "--json", "ls", "--watch", "--all")
	cmd.Dir, cmd.Env, cmd.WaitDelay = f.repo, f.env, time.Second
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		f.t.Fatal(err)
	}
	ended := make(chan struct{})
	f.t.Cleanup(func() {
		if f.t.Failed() {
			events, _ := os.ReadFile(filepath.Join(run.RunDir, "attempts", "1", agency.EventsFile))
			f.t.Logf("labels: %q from\n%s", tl.seen(), events)
		}
		cancel()
		<-ended
	})
	go func() {
		defer close(ended)
		defer func() { _ = cmd.Wait() }()
		lines := bufio.NewReader(out)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			var list api.ListRunsResponse
			if json.Unmarshal(line, &api.Envelope{Data: &list}) == nil {
				tl.take(list.Runs, run.ID)
			}
		}
	}()
	return tl
}

// begin starts a run on the task, follows it, and holds back the model's first answer until agency
// showed the run as working: without that, a quick answer can be read together with the prompt.
func (f *fixture) begin(a agent, flags ...string) (api.Run, *timeline) {
	f.t.Helper()
	release := f.model.HoldFirst()
	run := f.start(a, flags...)
	tl := f.watch(run)
	tl.await(agency.Working)
	release()
	return run, tl
}

func (tl *timeline) take(runs []api.Run, id agency.RunID) {
	i := slices.IndexFunc(runs, func(r api.Run) bool { return r.ID == id })
	if i < 0 {
		return
	}
	tl.mu.Lock()
	defer tl.mu.Unlock()
	if last := len(tl.runs) - 1; tl.runs[last].Status == runs[i].Status {
		tl.runs[last] = runs[i]
	} else {
		tl.runs = append(tl.runs, runs[i])
	}
	close(tl.changed)
	tl.changed = make(chan struct{})
}

// await waits until the run shows a label that no earlier await has passed, and returns the run as
// it was then.
func (tl *timeline) await(want agency.Label) api.Run {
	tl.t.Helper()
	return tl.awaitSummary(want, "")
}

// awaitSummary is await for a label that comes with a text in its summary.
func (tl *timeline) awaitSummary(want agency.Label, text string) api.Run {
	tl.t.Helper()
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	for {
		tl.mu.Lock()
		runs, changed := tl.runs, tl.changed
		for i := tl.next; i < len(runs); i++ {
			if runs[i].Status == want && strings.Contains(runs[i].Summary, text) {
				tl.next = i
				tl.mu.Unlock()
				return runs[i]
			}
		}
		tl.mu.Unlock()
		select {
		case <-changed:
		case <-deadline.C:
			tl.t.Fatalf("the run never showed %s %q: %q", want, text, tl.seen())
		}
	}
}

// seen returns the labels so far, without repetitions.
func (tl *timeline) seen() []agency.Label {
	tl.mu.Lock()
	defer tl.mu.Unlock()
	labels := make([]agency.Label, 0, len(tl.runs))
	for _, r := range tl.runs {
		labels = append(labels, r.Status)
	}
	return labels
}

// check checks that the run showed these labels and no others, without repetitions.
func (tl *timeline) check(want ...agency.Label) {
	tl.t.Helper()
	tl.checkPassing("", want...)
}

// checkPassing is check, except that the label between may show for a moment between two of them,
// because nothing holds the run in it. Before the agent's first report the run is active.
func (tl *timeline) checkPassing(between agency.Label, want ...agency.Label) {
	tl.t.Helper()
	got := tl.seen()
	if len(got) > 0 && got[0] == agency.Active {
		got = got[1:]
	}
	if !inOrder(got, want, between) {
		tl.t.Errorf("labels over time:\ngot  %q\nwant %q", got, want)
	}
}

// inOrder reports whether labels came in the wanted order, with nothing in between except the label
// between.
func inOrder(seen, want []agency.Label, between agency.Label) bool {
	for _, label := range seen {
		switch {
		case len(want) > 0 && label == want[0]:
			want = want[1:]
		case label != between:
			return false
		}
	}
	return len(want) == 0
}

// again is the time after which a key without an effect is pressed once more: an agent ignores keys
// in the moment after it drew a dialog.
const again = 5 * time.Second

// answer presses a key in a dialog until the run's label changes. If the first key was only slow,
// the second finds an empty prompt behind the dialog, where it must do nothing.
func (f *fixture) answer(run api.Run, tl *timeline, dialog, key string) {
	f.t.Helper()
	before := len(tl.seen())
	f.pressUntil(run, dialog, key, func() bool { return len(tl.seen()) > before })
}

// pressUntil presses a key until it has its effect, and only while the terminal shows the text of
// what accepts it.
func (f *fixture) pressUntil(run api.Run, shown, key string, effect func() bool) {
	f.t.Helper()
	var pressed time.Time
	f.until("an effect of "+key+" on "+shown, func() bool {
		if effect() {
			return true
		}
		if time.Since(pressed) >= again && strings.Contains(f.screen(run), shown) {
			f.press(run, key)
			pressed = time.Now()
		}
		return false
	})
}

// press presses keys in the run's terminal, by tmux's names for them.
func (f *fixture) press(run api.Run, keys ...string) {
	f.t.Helper()
	f.output("tmux", append([]string{"-S", f.tmuxSocket(), "send-keys", "-t", "=" + run.Session + ":"}, keys...)...)
}

// types types a text in the run's terminal.
func (f *fixture) types(run api.Run, text string) {
	f.t.Helper()
	f.output("tmux", "-S", f.tmuxSocket(), "send-keys", "-t", "="+run.Session+":", "-l", text)
}

// until polls a condition that no event announces.
func (f *fixture) until(what string, so func() bool) {
	f.t.Helper()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for deadline := time.Now().Add(timeout); !so(); <-look.C {
		if time.Now().After(deadline) {
			f.t.Fatalf("it never came to %s", what)
		}
	}
}

// shown waits until the run's terminal shows a text.
func (f *fixture) shown(run api.Run, text string) {
	f.t.Helper()
	f.until("a terminal that shows "+text, func() bool { return strings.Contains(f.screen(run), text) })
}

// screen returns what the run's terminal shows; the flag -e of tmux adds its colours.
func (f *fixture) screen(run api.Run, flags ...string) string {
	f.t.Helper()
	return f.output("tmux", append([]string{"-S", f.tmuxSocket(), "capture-pane", "-p", "-t", "=" + run.Session + ":"}, flags...)...)
}
