package terminal_test

import (
	"os"
	"testing"

	"agency/test/fixture"
)

// The dashboard has the keys that the user chose, and refuses those that would do two things.
func TestTUIKeys(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	start(t, f, echo, "--name", "worker")
	config, err := os.ReadFile(f.Config)
	if err != nil {
		t.Fatal(err)
	}
	choose := func(keys string) {
		t.Helper()
		if err := os.WriteFile(f.Config, []byte(string(config)+"\n[tui.keys]\n"+keys), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	choose("quit = [\"ctrl-q\"]\nmark = [\"q\"]\n")
	p := sitsAt(t, f, 100, 30)
	p.shows("> ● worker")
	p.types("q")
	p.shows("1 marked")
	p.types("\x11")
	p.shows("left with 0")

	choose("stop = [\"a\"]\n")
	p.enters("clear; agency tui; echo left with $?")
	p.shows("left with 1")
	p.shows("a would be both stop and allow")
	p.shows(`hint: give the other one a key of its own: [tui.keys] allow = ["KEY"]`)
}
