package terminal_test

import (
	"strings"
	"testing"

	"agency"
	"agency/internal/api"
	"agency/test/fixture"
)

// echo is a script that echoes each line, until it is asked to end.
const echo = `echo hello from the agent; while read line; do echo "got $line"; test "$line" != end || exit 0; done`

func TestAttachFromOutside(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	r := start(t, f, echo)
	c := agencyIn(t, f, 80, 24, "attach", r.Handle)
	c.shows("hello from the agent")
	c.types("typed by hand\r")
	c.shows("got typed by hand")
	c.types("\x02d")
	c.ends(0)
	if got := show(t, f, r).Run.State; got != agency.Running {
		t.Errorf("after the detach the run is %s", got)
	}
	c = agencyIn(t, f, 80, 24, "attach", r.Handle)
	c.shows("got typed by hand")
	c.types("end\r")
	completes(t, f, r)
}

func TestRunAttach(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	c := agencyIn(t, f, 80, 24, "run", "--runner", "shell", "--attach", "--name", "seen", "--prompt", echo)
	c.shows("hello from the agent")
	c.types("end\r")
	c.shows("got end")
	c.types("\x02d")
	c.ends(0)
	succeeds(t, f.Agency("wait", "seen", "--timeout", "30s"))
}

// In a pane of the agents' own server, attach makes the client switch to the run's session.
func TestAttachInsideTheSameServer(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	r := start(t, f, echo)
	p := shell(t, f.Tmux, 80, 24)
	c := inTerminal(t, f, 80, 24, "tmux", "-S", f.Socket, "attach-session", "-t", "you")
	c.shows("you>")
	c.types("agency attach " + r.Handle + "\r")
	c.shows("hello from the agent")
	if got := succeeds(t, f.Tmux("list-clients", "-F", "#{client_session}")); got != "agency_"+string(r.ID)+"\n" {
		t.Errorf("the client is in %q", got)
	}
	p.shows("agency attach") // the shell's own pane is unchanged
}

// In a pane of another server, attach shows the run inside that pane.
func TestAttachInsideAnotherServer(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	r := start(t, f, echo)
	p := shell(t, server(t, f), 80, 24)
	p.enters("agency attach " + r.Handle + "; echo left with $?")
	p.shows("hello from the agent")
	p.enters("from the nest")
	p.line("got from the nest")
	p.keys("C-b", "d")
	p.line("left with 0")
	if got := show(t, f, r).Run.State; got != agency.Running {
		t.Errorf("after the detach the run is %s", got)
	}
}

func TestAttachToWhatHasEnded(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	r := ended(t, f, start(t, f, "echo last words; exit 3"))
	c := agencyIn(t, f, 80, 24, "attach", r.Handle)
	c.shows("last words")
	c.shows("agency: the agent has ended: exit status 3")
	c.types("\x02d")
	c.ends(0)
}

func TestAttachToWhatWasStopped(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	r := start(t, f, echo)
	succeeds(t, f.Agency("stop", r.Handle))
	refused(t, f.Agency("attach", r.Handle), agency.CodeTmuxSessionNotFound, "the terminal of "+r.Handle+" is gone", "hint: agency logs "+r.Handle)
	c := agencyIn(t, f, 80, 24, "attach", r.Handle)
	c.ends(agency.CodeTmuxSessionNotFound.Exit())
}

func TestAttachWithoutATerminal(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	r := start(t, f, echo)
	refused(t, f.Agency("attach", r.Handle), agency.CodeUsage, "attach needs a terminal", "hint: agency logs -f "+r.Handle)
	// These are refused before anything is made.
	refused(t, f.Agency("run", "--runner", "shell", "--attach", "--prompt", echo), agency.CodeUsage, "--attach needs a terminal", "hint: ")
	if runs := decode[api.ListRunsResponse](t, f, "ls").Runs; len(runs) != 1 {
		t.Errorf("there are %d runs, want 1", len(runs))
	}
	// A program asks for the command instead.
	got := decode[struct {
		RunID agency.RunID `json:"run_id"`
		Argv  []string     `json:"argv"`
	}](t, f, "attach", r.Handle)
	if want := "attach-session -t =agency_" + string(r.ID); !strings.HasSuffix(strings.Join(got.Argv, " "), want) {
		t.Errorf("the command is %q, want one that ends in %q", got.Argv, want)
	}
}
