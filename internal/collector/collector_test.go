package collector_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agency"
	"agency/internal/collector"
	"agency/internal/spool"
)

// attempt makes the folder of an attempt and the environment of its agent.
func attempt(t *testing.T) (dir, evidence string) {
	t.Helper()
	home, id := t.TempDir(), "r_01JD5Y0000000000000000000A"
	t.Setenv("AGENCY_HOME", home)
	t.Setenv("AGENCY_RUN_ID", id)
	t.Setenv("AGENCY_ATTEMPT", "1")
	dir = filepath.Join(home, "runs", id, "attempts", "1")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir, filepath.Join(dir, agency.EventsFile)
}

// signals returns what the evidence of an attempt shows, in order.
func signals(t *testing.T, evidence string) []agency.Signal {
	t.Helper()
	pieces, _, err := spool.Tail(evidence, 0)
	if err != nil {
		t.Fatal(err)
	}
	var signals []agency.Signal
	for i := range pieces {
		if pieces[i].At.IsZero() {
			t.Errorf("no time: %+v", pieces[i])
		}
		signals = append(signals, pieces[i].Signal)
	}
	return signals
}

// A stream comes in pieces that end anywhere; a line that is too long is skipped, the next one counts.
func TestOutput(t *testing.T) {
	dir, evidence := attempt(t)
	o := collector.Output(&agency.Launch{RunnerKind: "claude_code", Headless: true, AttemptDir: dir})
	const line = `{"type":"system","subtype":"init","session_id":"c1","model":"m"}` + "\n"
	for piece := range slices.Chunk([]byte(line), 7) {
		o.Output(piece)
	}
	once := signals(t, evidence)
	if len(once) == 0 {
		t.Fatal("a line in pieces shows nothing")
	}
	o.Output([]byte(strings.Repeat("x", 5<<20)))
	o.Output([]byte("x\n" + line))
	if got := signals(t, evidence); !slices.Equal(got, slices.Concat(once, once)) {
		t.Errorf("after a line that is too long: %q, want %q twice", got, once)
	}
}

// Some programs animate their titles: only a title that shows something new is kept.
func TestTitle(t *testing.T) {
	dir, evidence := attempt(t)
	o := collector.Output(&agency.Launch{RunnerKind: "claude_code", AttemptDir: dir})
	for _, title := range []string{"⠂ Fix it", "⠐ Fix it", "✳ Fix it", "✳ Fix it", "⠂ Fix it"} {
		o.Title(title)
	}
	if got := signals(t, evidence); len(got) != 3 {
		t.Errorf("got %q", got)
	}
}

// An agent that keeps the pipe to its hook open does not keep the hook.
func TestHookOfOpenPipe(t *testing.T) {
	_, evidence := attempt(t)
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		go func() { _, _ = fmt.Fprint(w, `{"hook_event_name":"Stop","session_id":"c1"}`) }()
		collector.Hook("claude_code", r)
		if _, err := os.Stat(evidence); !os.IsNotExist(err) {
			t.Errorf("half a call was kept: %v", err)
		}
		_ = w.CloseWithError(io.ErrUnexpectedEOF)
	})
}

// How far the journal is read comes from the newest piece of the protocol, though others follow it.
func TestKept(t *testing.T) {
	dir, evidence := attempt(t)
	at := time.Now()
	err := spool.Append(evidence,
		agency.Evidence{Source: agency.FromProtocol, Signal: agency.SignalPrompt, At: at, Offset: 40},
		agency.Evidence{Source: agency.FromProtocol, Signal: agency.SignalTurnEnded, At: at, Offset: 90},
		agency.Evidence{Source: agency.FromHook, Signal: agency.SignalPrompt, At: at})
	if err != nil {
		t.Fatal(err)
	}
	speaker := collector.Speaker(&agency.Launch{RunnerKind: "claude_code", AttemptDir: dir})
	if got := speaker.Kept(); got != 90 {
		t.Errorf("got %d, want 90", got)
	}
	speaker.Keep([]agency.Evidence{{Source: agency.FromProtocol, Signal: agency.SignalPrompt, Offset: 120}})
	if got := speaker.Kept(); got != 120 {
		t.Errorf("after another piece: %d, want 120", got)
	}
}
