// Package terminal_test uses programs that own a terminal as a user does: under agency run, through
// real tmux clients.
package terminal_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agency"
	"agency/internal/api"
	"agency/test/fixture"
)

// bin is the folder of the binary under test.
var bin string

func TestMain(m *testing.M) {
	if bin = os.Getenv("AGENCY_TEST_ENDS"); bin != "" { // of TestLeavesNothing
		os.Exit(m.Run())
	}
	os.Exit(fixture.Run(m, &bin))
}

// timeout bounds every wait for something to appear.
const timeout = time.Minute

// need skips a test that uses a program which is not installed.
func need(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skip(program + " is not installed")
	}
}

// await waits until done returns true; its second result describes the present state.
func await(t *testing.T, what string, done func() (ok bool, instead string)) {
	t.Helper()
	deadline := time.Now().Add(timeout)
	for {
		ok, instead := done()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s; instead:\n%s", timeout, what, instead)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// succeeds returns the output of a command, which must exit with 0.
func succeeds(t *testing.T, r fixture.Result) string {
	t.Helper()
	if r.Exit != 0 {
		t.Fatalf("exit status %d: %s%s", r.Exit, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// refused checks that a command failed with a code, and that its error contains all of the words.
func refused(t *testing.T, r fixture.Result, code agency.Code, words ...string) {
	t.Helper()
	if r.Exit != code.Exit() {
		t.Errorf("exit status %d, want %d: %s", r.Exit, code.Exit(), r.Stderr)
	}
	for _, want := range append(words, "["+string(code)+"]") {
		if !strings.Contains(r.Stderr, want) {
			t.Errorf("%q is not in: %s", want, r.Stderr)
		}
	}
}

// decode decodes the data of an answer with --json.
func decode[T any](t *testing.T, f *fixture.Fixture, args ...string) T {
	t.Helper()
	out := succeeds(t, f.Agency(append(args, "--json")...))
	var envelope struct{ Data T }
	if err := json.Unmarshal([]byte(out), &envelope); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	return envelope.Data
}

// start starts a shell run and returns it.
func start(t *testing.T, f *fixture.Fixture, script string, flags ...string) api.Run {
	t.Helper()
	return decode[api.RunResponse](t, f, slices.Concat([]string{"run", "--runner", "shell", "--prompt", script}, flags)...).Run
}

// ended waits for a run's end and returns it.
func ended(t *testing.T, f *fixture.Fixture, r api.Run) api.Run {
	t.Helper()
	for before := int64(-1); ; { // a busy machine takes minutes for much output
		f.Agency("wait", string(r.ID), "--timeout", "1m") // its exit status reports how the run ended
		if r = show(t, f, r).Run; r.State.Final() {
			return r
		}
		log, err := os.Stat(filepath.Join(r.RunDir, "logs", "runner.log"))
		if err != nil || log.Size() == before {
			t.Fatalf("the run is still %s: %v", r.State, err)
		}
		before = log.Size()
	}
}

// completes waits for a run's end, which must be successful.
func completes(t *testing.T, f *fixture.Fixture, r api.Run) {
	t.Helper()
	if r = ended(t, f, r); r.State != agency.Completed {
		t.Errorf("the run is %s: %s %s", r.State, r.Summary, r.Error)
	}
}

func show(t *testing.T, f *fixture.Fixture, r api.Run) api.ShowRunResponse {
	t.Helper()
	return decode[api.ShowRunResponse](t, f, "show", string(r.ID))
}

// paneOf returns the pane of a run, from the record.
func paneOf(t *testing.T, f *fixture.Fixture, r api.Run) *pane {
	t.Helper()
	return &pane{t: t, tmux: f.Tmux, id: show(t, f, r).Attempts[0].Pane}
}
