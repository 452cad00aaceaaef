package terminal_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agency"
	"agency/test/fixture"
)

// much returns how much a talkative agent writes, in bytes.
func much() int {
	if testing.Short() || fixture.Race {
		return 8 << 20
	}
	return 200 << 20
}

func TestMuchOutput(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{"interactive": nil, "headless": {"--headless"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fixture.New(t, bin)
			// Without -opost the terminal would make two bytes of each newline.
			script := fmt.Sprintf("test ! -t 1 || stty -opost; yes 'an agent that talks and talks' | head -c %d", much())
			r := start(t, f, script, flags...)
			completes(t, f, r)
			info, err := os.Stat(filepath.Join(r.RunDir, "logs", "runner.log"))
			if err != nil {
				t.Fatal(err)
			}
			if got, want := info.Size(), int64(much()); got != want {
				t.Errorf("the log has %d bytes, want %d", got, want)
			}
		})
	}
}

// A log consists of bytes and not of lines: output without a newline shows too.
func TestOneLongLine(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	const size = 1 << 20
	r := start(t, f, fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x; sleep 1000", size))
	want := bytes.Repeat([]byte("x"), size)
	log := filepath.Join(r.RunDir, "logs", "runner.log")
	await(t, "all of the line is in the log", func() (bool, string) {
		got, err := os.ReadFile(log)
		return bytes.Equal(got, want), fmt.Sprintf("%d bytes, %v", len(got), err)
	})
	if got := succeeds(t, f.Agency("logs", r.Handle)); got != string(want) {
		t.Errorf("agency logs printed %d bytes, want %d", len(got), size)
	}
	if got := show(t, f, r).Run.State; got != agency.Running {
		t.Errorf("the run is %s", got)
	}
}

// An agent's output must not act on the terminal of a user who reads it later.
func TestLogsOnATerminal(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	hostile := map[string]string{
		"title": "\x1b]0;owned\x07", "clipboard": "\x1b]52;c;b3duZWQ=\x1b\\", "colour": "\x1b[31m", "clear": "\x1b[2J\x1b[H",
		"bare C1": "\x9b31m", "C1": "\u009b31m", "device": "\x1bP+q544e\x1b\\", "question": "\x1b[c", "bell": "\a", "back": "safe\b\b\b\bevil",
		"bidi": "\u202egnp.exe\u202c", "isolate": "\u2066x\u2069", "lone": "\x1b",
	}
	var script strings.Builder
	for name, bytes := range hostile {
		fmt.Fprintf(&script, "printf '%s <%%b>\\n' '", name)
		for _, b := range []byte(bytes) {
			fmt.Fprintf(&script, "\\0%03o", b)
		}
		script.WriteString("'\n")
	}
	script.WriteString("echo all of it\n")
	r := ended(t, f, start(t, f, script.String(), "--headless"))
	raw := succeeds(t, f.Agency("logs", r.Handle))
	c := agencyIn(t, f, 80, 24, "logs", r.Handle)
	c.shows("all of it")
	c.ends(0)
	for name, text := range hostile {
		if !strings.Contains(raw, name+" <"+text+">\n") {
			t.Errorf("%s: not byte for byte in a pipe", name)
		}
		if !strings.Contains(c.wrote(), name+" <") {
			t.Errorf("%s: its line is missing on the terminal", name)
		}
	}
	for _, r := range c.wrote() {
		bidi := r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
		control := r < ' ' && r != '\r' && r != '\n' || r >= 0x7f && r <= 0x9f
		if bidi || control {
			t.Errorf("%U reached the terminal: %q", r, c.wrote())
			break
		}
	}
}
