package crash_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"agency"
)

// setClock sets the clock of every process of agency.
func (w *folder) setClock(off time.Duration) { w.write("killpoint.clock", off.String()) }

// times checks what must hold for any setting of the clock: events are in order, no change is
// earlier than the creation, and no answer contains a future time.
func (w *client) times() {
	w.t.Helper()
	var page struct {
		Events []agency.Event `json:"events"`
	}
	if err := w.data(&page, "events"); err != nil {
		w.t.Fatal(err)
	}
	for i := 1; i < len(page.Events); i++ {
		before, e := page.Events[i-1], page.Events[i]
		if e.Seq != before.Seq+1 || e.At.Before(before.At) {
			w.t.Errorf("event %d is of %v, and %d before it of %v", e.Seq, e.At, before.Seq, before.At)
		}
	}
	for _, args := range [][]string{{"ls", "--all"}, {"show", "target"}, {"show", "other"}} {
		if text := w.must(args...); regexp.MustCompile(`[\s(]-\d+(s|m|h|d)\b`).MatchString(text) {
			w.t.Errorf("agency %v tells of a negative time:\n%s", args, text)
		}
	}
}

// updated returns the updated_at of every run.
func (w *client) updated() map[string]time.Time {
	w.t.Helper()
	var list struct {
		Runs []struct {
			ID        string    `json:"id"`
			UpdatedAt time.Time `json:"updated_at"`
		} `json:"runs"`
	}
	if err := w.data(&list, "ls", "--all"); err != nil {
		w.t.Fatal(err)
	}
	all := map[string]time.Time{}
	for _, r := range list.Runs {
		all[r.ID] = r.UpdatedAt
	}
	return all
}

// status returns the derived status of a run.
func (w *client) status(name string) string {
	w.t.Helper()
	var list struct {
		Runs []struct{ Name, Status string } `json:"runs"`
	}
	if err := w.data(&list, "ls", "--all"); err != nil {
		w.t.Fatal(err)
	}
	for _, r := range list.Runs {
		if r.Name == name {
			return r.Status
		}
	}
	w.t.Fatalf("there is no run %s", name)
	return ""
}

// The clock is set by an hour while everything runs, or while no daemon runs.
func TestClockJumps(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		off  time.Duration
		down bool // no daemon runs when it happens
	}{
		"forward":                  {time.Hour, false},
		"back":                     {-time.Hour, false},
		"forward without a daemon": {time.Hour, true},
		"back without a daemon":    {-time.Hour, true},
	} {
		if !whole && test.down {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			jump(t, test.off, test.down)
		})
	}
}

// jump sets the clock between the sign of life of one agent and the question of another.
func jump(t *testing.T, off time.Duration, down bool) {
	t.Helper()
	w := newWorld(t)
	w.must("run", "--name", "target", "--prompt", "work on it\nwait-file "+w.path("go")+"\nwrite work.txt precious\nask ready?")
	w.must("wait", "other", "--for", "needs-input", "--timeout", "20s")
	w.await("the word", func() bool { return strings.Contains(w.must("show", "target"), "on it") })
	before := w.updated()
	if down {
		w.must("daemon", "stop")
	}
	w.setClock(off)

	// A sign of life of seconds ago is not inactivity. Between two daemons the elapsed time
	// is unknown, and the clock counts.
	want := "working"
	if down && off > 0 {
		want = "stalled"
	}
	if got := w.status("target"); got != want {
		t.Errorf("the agent is %s, want %s", got, want)
	}
	if r := w.f.Agency("wait", "target", "--for", "needs-input", "--timeout", "1s"); r.Exit != 5 {
		t.Errorf("a wait that is in vain: exit %d: %s%s", r.Exit, r.Stdout, r.Stderr)
	}
	// An answer and a later question are recorded in this order.
	w.must("send", "other", "yes")
	if got := w.status("other"); got == "needs input" {
		t.Error("an answered question stands")
	}
	w.write("go", "")
	w.must("wait", "target", "--for", "needs-input", "--timeout", "20s")
	w.must("send", "target", "no")
	w.await("the ends", func() bool { return w.run("target").State == "completed" && w.run("other").State == "completed" })
	w.times()
	for id, at := range w.updated() {
		if at.Before(before[id]) {
			t.Errorf("%s was updated at %v, and before that at %v", id, at, before[id])
		}
	}
	w.endAfterStart("target")
	w.setClock(0)
	w.must("resume", "--fresh", "target")
	w.must("wait", "target", "--for", "needs-input", "--timeout", "20s")
	w.times()
	w.must("stop", "target")
	w.calm(true)
}

// endAfterStart checks that no attempt of a run ended before it began.
func (w *client) endAfterStart(name string) {
	w.t.Helper()
	var shown struct {
		Attempts json.RawMessage `json:"attempts"`
	}
	if err := w.data(&shown, "show", name); err != nil {
		w.t.Fatal(err)
	}
	var attempts []struct {
		Started time.Time `json:"started_at"`
		Ended   time.Time `json:"ended_at"`
	}
	if err := json.Unmarshal(shown.Attempts, &attempts); err != nil {
		w.t.Fatal(err)
	}
	for _, a := range attempts {
		if a.Ended.Before(a.Started) {
			w.t.Errorf("an attempt of %s began at %v and ended at %v", name, a.Started, a.Ended)
		}
	}
}
