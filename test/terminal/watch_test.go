package terminal_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"agency/test/fixture"
)

func TestWatchRepaintsInPlace(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	start(t, f, echo, "--name", "one")
	p := shell(t, server(t, f), 100, 24)
	p.enters("clear; agency ls --watch; echo left with $?")
	p.until("the first list", func(screen string) bool { return strings.Contains(screen, "● active") })
	succeeds(t, f.Agency("send", "one", "end"))
	p.until("the run's end", func(screen string) bool {
		return strings.Contains(screen, "✓ completed") && !strings.Contains(screen, "active")
	})
	if screen := p.screen(); strings.Count(screen, "RUN_ID") != 1 {
		t.Errorf("the list was not repainted in place:\n%s", screen)
	}
	start(t, f, echo, "--name", "two")
	p.until("both runs", func(screen string) bool {
		lines := strings.Split(screen, "\n")
		return strings.Contains(lines[1], "  two  ") && strings.Contains(lines[1], "active") && strings.Contains(lines[2], "  one  ")
	})
	p.keys("C-c")
	p.until("the cursor below the list", func(screen string) bool {
		lines := strings.Split(screen, "\n")
		return len(lines) > 4 && strings.HasPrefix(lines[0], "RUN_ID") && strings.Contains(lines[2], "  one  ") && lines[3] == "left with 0" &&
			strings.HasPrefix(lines[4], "you>")
	})
}

// A list that is longer than the screen shows its beginning: what needs a user, then the newest
// runs.
func TestWatchOnASmallScreen(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	for n := range 6 {
		start(t, f, echo, "--name", fmt.Sprintf("run-%d", n))
	}
	p := shell(t, server(t, f), 90, 6)
	p.enters("clear; agency ls --watch; echo left with $?")
	// Five rows are for the list and one is for the cursor.
	list := func(more int, names ...string) func(string) bool {
		return func(screen string) bool {
			lines := strings.Split(screen, "\n")
			if !strings.Contains(lines[0], "STATUS") || lines[1+len(names)] != fmt.Sprintf("… %d more", more) || lines[2+len(names)] != "" {
				return false
			}
			for i, want := range names {
				name, status, _ := strings.Cut(want, " ")
				if line := lines[1+i]; !strings.Contains(line, name+"  ") || !strings.Contains(line, status) {
					return false
				}
			}
			return true
		}
	}
	p.until("the newest three", list(3, "run-5 active", "run-4 active", "run-3 active"))
	succeeds(t, f.Agency("send", "run-4", "end"))
	p.until("the end of a visible run", list(3, "run-5 active", "run-4 completed", "run-3 active"))
	succeeds(t, f.Agency("send", "run-0", "end"))
	start(t, f, echo, "--name", "run-6")
	p.until("the next run", list(4, "run-6 active", "run-5 active", "run-4 completed"))
	succeeds(t, p.tmux("resize-window", "-t", p.id, "-x", "60", "-y", "8"))
	p.until("two more rows", list(2, "run-6 active", "run-5 active", "run-4 completed", "run-3 active", "run-2 active"))
	succeeds(t, p.tmux("resize-window", "-t", p.id, "-x", "90", "-y", "6"))
	p.until("the newest three again", list(4, "run-6 active", "run-5 active", "run-4 completed"))
	p.keys("C-c")
	p.line("left with 0")
}

// With 80 columns every run has one line, which contains the words that matter.
func TestWatchFitsItsTerminal(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	asks := start(t, f, "printf '%s' '"+asking+"' >.agency/state/new && mv .agency/state/new .agency/state/runner_status.json; exec sleep 1000",
		"--name", "fix-the-login-test")
	start(t, f, "exec sleep 1000", "--name", "other")
	succeeds(t, f.Agency("wait", string(asks.ID), "--for", "needs-input", "--timeout", "1m")) // the first list is shown once
	p := shell(t, server(t, f), 80, 24)
	p.enters("clear; agency ls; agency ls --watch; echo left with $?")
	fits := func(columns int, words ...string) func(string) bool {
		return func(screen string) bool {
			lines := strings.Split(screen, "\n")
			for _, word := range words {
				if !strings.Contains(screen, word) {
					return false
				}
			}
			for _, line := range lines {
				if ansi.StringWidth(line) > columns {
					t.Errorf("%q is wider than %d", line, columns)
				}
			}
			return strings.Count(screen, "needs input") == strings.Count(screen, "STATUS")
		}
	}
	p.until("the list, twice", func(screen string) bool {
		return fits(80, "◐ needs input", "Welche 界界")(screen) && strings.Count(screen, "STATUS") == 2
	})
	succeeds(t, p.tmux("resize-window", "-t", p.id, "-x", "60", "-y", "10"))
	p.until("the list on fewer columns", func(screen string) bool {
		return fits(60, "◐ needs input")(screen) && strings.HasPrefix(screen, "NAME") && strings.Count(screen, "STATUS") == 1
	})
	succeeds(t, f.Agency("stop", string(asks.ID)))
	succeeds(t, f.Agency("rm", string(asks.ID)))
	p.until("a shorter list", func(screen string) bool {
		lines := strings.Split(screen, "\n")
		return strings.Contains(lines[0], "STATUS") && strings.Contains(lines[1], "other") && strings.HasPrefix(lines[2], "q: quit  j k: choose")
	})
	p.keys("C-c")
	p.line("left with 0")
}

const asking = `{"schema_version": "1.0", "status": "needs_input", "updated_at": "", "summary": "s",
"questions": ["Welche 界界 Bibliothek soll es sein, die alte oder die neue?"], "blockers": [], "how_to_test": "", "risks": []}`

// Keys act on a run of the list, and q leaves it.
func TestWatchKeys(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	start(t, f, echo, "--name", "one")
	start(t, f, echo, "--name", "two")
	p := shell(t, server(t, f), 100, 24)
	p.enters("clear; agency ls --watch; echo left with $?")
	p.until("the list", func(screen string) bool { return strings.Count(screen, "active") == 2 })
	p.types("jjk") // two is the newest, so one is the second; k goes back to two
	p.types("x")
	p.shows("x again: stop two")
	p.types("j")
	p.types("l")
	p.until("the log of one in place of the list", func(screen string) bool {
		return strings.Contains(screen, "hello from the agent") && strings.Contains(screen, "(any key: back to the list)")
	})
	p.types(" ")
	p.until("the list", func(screen string) bool { return strings.Count(screen, "active") == 2 })
	p.keys("Enter")
	p.shows("hello from the agent")
	p.shows("F12: leave")
	p.keys("F12")
	p.until("the list again", func(screen string) bool { return strings.Contains(screen, "STATUS") })
	p.types("x")
	p.shows("x again: stop one")
	p.types("x")
	p.shows("one is stopped")
	p.shows("(any key: back to the list)")
	p.types(" ")
	p.until("the end of the run in the list", func(screen string) bool {
		_, list, ok := strings.Cut(screen, "STATUS")
		return ok && strings.Contains(list, " stopped ")
	})
	p.types("q")
	p.line("left with 0")
	p.enters("stty -a | grep -c ' -echo '; echo counted") // the terminal is as it was
	p.until("no line that says -echo", func(screen string) bool { return strings.Contains(screen, "\n0\ncounted") })
}

// Another command has the screen in place of the list until a key is pressed, whatever the key is.
// Ctrl-Z stops the watch, as any command, and fg brings it back.
func TestWatchGivesTheTerminalBack(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	start(t, f, echo, "--name", "one")
	p := shell(t, server(t, f), 100, 24)
	for _, size := range [][2]string{{"60", "20"}, {"80", "24"}, {"200", "50"}} {
		succeeds(t, p.tmux("resize-window", "-t", p.id, "-x", size[0], "-y", size[1]))
		list := func(screen string) bool {
			return strings.Count(screen, "STATUS") == 1 && strings.Contains(screen, "active")
		}
		p.enters("clear; agency ls --watch")
		p.until("the list", list)
		p.types("jl")
		p.until("the log in place of the list", func(screen string) bool {
			return strings.Contains(screen, "hello from the agent") && strings.Contains(screen, "(any key: back to the list)") && !strings.Contains(screen, "STATUS")
		})
		p.types("q")
		p.until("the list again", list)
		p.keys("C-z")
		p.until("the shell", func(screen string) bool {
			return strings.Count(screen, "you>") == 1 && !strings.Contains(screen, "STATUS")
		})
		p.enters("fg")
		p.until("the list below the shell", list)
		p.types("q")
		p.until("the shell again", func(screen string) bool { return strings.HasSuffix(strings.TrimSpace(screen), "you>") })
		p.enters("clear; agency ls --watch &")
		p.until("lines in the background", func(screen string) bool { return strings.Contains(screen, "one  ● active") })
		p.enters("clear; jobs; echo $((6*7))")
		p.until("the shell goes on", func(screen string) bool {
			return strings.Contains(screen, "Running") && strings.Contains(screen, "\n42\n")
		})
		p.enters("kill %1; wait; echo gone")
		p.line("gone")
	}
}
