package terminal_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agency"
	"agency/test/fixture"
)

func TestLess(t *testing.T) {
	t.Parallel()
	need(t, "less")
	f := fixture.New(t, bin)
	r := start(t, f, "seq 1 500 > numbers; exec less numbers")
	p := paneOf(t, f, r)
	p.line("1")
	p.keys("Space")
	p.until("the second page", func(screen string) bool {
		return !strings.HasPrefix(screen, "1\n") && strings.HasPrefix(screen, p.is("#{pane_height}"))
	})
	p.enters("/^400$")
	p.until("line 400 is on top", func(screen string) bool { return strings.HasPrefix(screen, "400\n401\n") })
	p.types("q")
	completes(t, f, r)
}

func TestVi(t *testing.T) {
	t.Parallel()
	need(t, "vi")
	f := fixture.New(t, bin)
	r := start(t, f, "exec vi letter.txt")
	p := paneOf(t, f, r)
	p.shows("letter.txt")
	p.types("i")
	p.types("written in vi ✓")
	p.shows("written in vi ✓")
	p.keys("Escape")
	p.enters(":wq")
	completes(t, f, r)
	got, err := os.ReadFile(filepath.Join(r.Worktree, "letter.txt"))
	if want := "written in vi ✓\n"; err != nil || string(got) != want {
		t.Errorf("the file has %q (%v), want %q", got, err, want)
	}
}

func TestTop(t *testing.T) {
	t.Parallel()
	need(t, "top")
	f := fixture.New(t, bin)
	r := start(t, f, "exec top")
	p := paneOf(t, f, r)
	p.until("top shows the load", func(screen string) bool { return strings.Contains(strings.ToLower(screen), "load av") })
	p.types("q")
	completes(t, f, r)
}

// Job control needs a controlling terminal whose foreground changes, and keys that become signals
// there.
func TestInteractiveShell(t *testing.T) {
	t.Parallel()
	need(t, "ps")
	f := fixture.New(t, bin)
	r := start(t, f, "PS1='agent> '; export PS1; exec sh -i")
	p := paneOf(t, f, r)
	p.shows("agent>")
	const job = "sleep 100.4711"
	p.enters(job)
	foreground(t, job)
	p.keys("C-z")
	p.shows("Stopped")
	p.enters("clear; jobs")
	p.until("the job is listed", func(screen string) bool {
		return strings.Contains(screen, "Stopped") && strings.Contains(screen, job)
	})
	p.enters("fg")
	foreground(t, job)
	p.keys("C-c")
	p.enters("clear; jobs; echo no $((1+1)) jobs")
	p.line("no 2 jobs")
	if screen := p.screen(); strings.Contains(screen, job) {
		t.Errorf("the job is still there:\n%s", screen)
	}
	p.enters("exit 3")
	if r = ended(t, f, r); r.ExitCode == nil || *r.ExitCode != 3 {
		t.Errorf("the run is %s %s, want exit 3", r.State, r.Summary)
	}
}

func TestSizeFollowsTheClient(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	r := start(t, f, "trap 'stty size' WINCH; echo ready; while :; do sleep 0.05; done")
	p := paneOf(t, f, r)
	p.line("ready")
	// One row is for the status line.
	c := agencyIn(t, f, 100, 31, "attach", r.Handle)
	p.line("30 100")
	c.resize(70, 21)
	p.line("20 70")
	c.types("\x02d")
	c.ends(0)
	succeeds(t, f.Tmux("resize-window", "-t", p.id, "-x", "64", "-y", "12"))
	p.line("12 64")
}

func TestAllThreeAreTheTerminal(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	completes(t, f, start(t, f, "test -t 0 && test -t 1 && test -t 2 && : < /dev/tty > /dev/tty"))
}

// bytesOf returns a script that switches a terminal mode on, reads that many bytes raw and shows
// them.
func bytesOf(mode, count string) string {
	return "stty raw -echo; printf '\\033[?" + mode + "hready'; head -c " + count + " > typed; stty sane; echo; od -An -c typed; echo shown; read line"
}

func typed(screen string) string { return strings.Join(strings.Fields(screen), " ") }

func TestBracketedPasteReachesTheProgram(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	r := start(t, f, bytesOf("2004", "19"))
	p := paneOf(t, f, r)
	p.shows("ready")
	succeeds(t, f.Tmux("set-buffer", "one\ntwo"))
	succeeds(t, f.Tmux("paste-buffer", "-p", "-t", p.id))
	p.shows("shown")
	if got, want := typed(p.screen()), `033 [ 2 0 0 ~ o n e \r t w o 033 [ 2 0 1 ~`; !strings.Contains(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestMouseReachesTheProgram(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	r := start(t, f, bytesOf("1000;1006", "9"))
	p := paneOf(t, f, r)
	p.shows("ready")
	c := agencyIn(t, f, 100, 31, "attach", r.Handle)
	c.shows("\x1b[?1006h")
	c.types("\x1b[<0;5;3M")
	p.shows("shown")
	if got, want := typed(p.screen()), `033 [ < 0 ; 5 ; 3 M`; !strings.Contains(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The record contains the pane: a user who splits the window changes nothing.
func TestSplitWindow(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	r := start(t, f, "echo first; while read line; do echo got $line; done")
	p := paneOf(t, f, r)
	p.line("first")
	other := succeeds(t, f.Tmux("split-window", "-b", "-P", "-F", "#{pane_id}", "-t", p.id, "env", "PS1=mine> ", "sh", "-i"))
	mine := &pane{t: t, tmux: f.Tmux, id: strings.TrimSpace(other)}
	mine.shows("mine>")
	if active := mine.is("#{pane_active}"); active != "1" {
		t.Fatalf("the new pane is not the active one: %s", active)
	}
	succeeds(t, f.Agency("send", r.Handle, "a message"))
	p.line("got a message")
	if screen := mine.screen(); strings.Contains(screen, "message") {
		t.Errorf("the message went into the wrong pane:\n%s", screen)
	}
	if out := succeeds(t, f.Agency("stop", r.Handle)); !strings.Contains(out, "is stopped") {
		t.Errorf("stop said %q", out)
	}
	if got := show(t, f, r).Run.State; got != agency.Killed {
		t.Errorf("the run is %s", got)
	}
}
