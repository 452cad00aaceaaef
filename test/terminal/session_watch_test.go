package terminal_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"agency/test/fixture"
)

// A session is repainted in place, at any size of the terminal; Ctrl-C leaves it running, and the
// next watch ends with it.
func TestSessionWatch(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	plan := "name: many\nmax_parallel: 10\ndefaults: {runner: shell, headless: true}\nagents:\n  - {id: first, prompt: until test -e $ROOT/go; do sleep 0.05; done}\n"
	for n := range 30 {
		plan += fmt.Sprintf("  - {id: after-%02d, after: [first], prompt: exit 0}\n", n)
	}
	if err := os.WriteFile(filepath.Join(f.Root, "plan.yaml"), []byte(plan), 0o600); err != nil {
		t.Fatal(err)
	}
	p := shell(t, server(t, f), 80, 12)
	succeeds(t, f.Agency("session", "start", filepath.Join(f.Root, "plan.yaml")))
	p.enters("clear; agency session watch; echo left with $?")
	picture := func(columns, rows int, words ...string) func(string) bool {
		return func(screen string) bool {
			lines := strings.Split(strings.TrimRight(screen, "\n"), "\n")
			for _, line := range lines {
				if ansi.StringWidth(line) > columns {
					t.Errorf("%q is wider than %d", line, columns)
				}
			}
			for _, word := range words {
				if !strings.Contains(screen, word) {
					return false
				}
			}
			return strings.HasPrefix(lines[0], "many  ") && len(lines) <= rows && strings.Count(screen, "wave 1") == 1
		}
	}
	p.until("the first picture", picture(80, 12, "● running", "1 running, 30 queued", "● first", "wave 2", "○ after-00", "… 25 queued"))
	succeeds(t, p.tmux("resize-window", "-t", p.id, "-x", "40", "-y", "20"))
	p.until("the picture on fewer columns and more rows", picture(40, 20, "● first", "○ after-12", "… 17 queued"))
	p.keys("C-c")
	p.line("left with 130")
	p.shows("the session continues")
	p.enters("clear; agency session watch; echo left with $?")
	p.until("the picture again", picture(40, 20, "● first"))
	succeeds(t, f.Agency("daemon", "stop"))
	p.until("the word that it waits, below the picture", func(screen string) bool {
		lines := strings.Split(strings.TrimRight(screen, "\n"), "\n")
		return strings.HasPrefix(lines[0], "many  ") && strings.HasPrefix(lines[len(lines)-1], "agency: the daemon was stopped; this")
	})
	succeeds(t, f.Agency("daemon", "start"))
	p.until("the picture as it was", picture(40, 20, "● first"))
	if err := os.WriteFile(filepath.Join(f.Root, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	succeeds(t, f.Agency("session", "wait", "latest")) // thirty agents take their time on a busy machine
	p.line("left with 0")
	if screen := p.screen(); !strings.Contains(screen, "✓ complete") || !strings.Contains(screen, "31 done") {
		t.Errorf("the last picture:\n%s", screen)
	}
}
