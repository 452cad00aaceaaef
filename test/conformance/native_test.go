package conformance_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agency"
	"agency/test/conformance/modelserver"
)

// The agent's own terminal joins the conversation that agency leads: what is answered and typed there
// counts, also after the wrapper was killed.
func TestNative(t *testing.T) {
	t.Parallel()
	for _, runner := range speaking(false) {
		if setups[agency.RunnerKind(runner)].joins.shows == "" {
			continue
		}
		t.Run(runner, func(t *testing.T) {
			t.Parallel()
			testStates(t, runner, map[string]state{"joined": nativeJoined, "in a sandbox": nativeInSandbox})
		})
	}
}

func nativeJoined(t *testing.T, binary string, a agent) {
	f, run, tl := speak(t, binary, a, touch, modelserver.Turn{Text: "It is made."}, modelserver.Turn{Text: "Good night."}, modelserver.Turn{Text: "Good morning."})
	asks := tl.await(agency.NeedsInput)
	f.join(string(run.ID))
	f.allowNative(a)
	tl.await(agency.Waiting)
	if !f.made(run) {
		t.Error("the command was not run")
	}
	f.rejects(agency.CodeInvalidState, "was answered by "+agency.UserTerminal, "answer", string(run.ID), "deny", "--prompt-id", asks.Request.ID)
	f.sees("It is made.")
	f.typeNative("good night")
	f.sees("› good night")
	f.typeNative("Enter")
	f.asked(2)
	f.until("a turn that ended", func() bool {
		return strings.HasSuffix(f.output(binary, "logs", string(run.ID)), "> ("+agency.UserTerminal+") good night\n● Good night.\n— turn ended\n")
	})
	f.until("the record of both", func() bool {
		events := f.output(binary, "--json", "events", "--run", string(run.ID))
		return strings.Count(events, `"`+agency.UserTerminal+`"`) == 2
	})

	f.killWrapper(run)
	f.until("the terminal again", func() bool {
		return strings.HasSuffix(f.output(binary, "logs", string(run.ID)), "— turn ended\n— the agent's own terminal joined\n")
	})
	f.output("tmux", "-S", f.nativeSocket(), "respawn-pane", "-k", binary+" attach --native "+string(run.ID))
	f.sees("Good night.")
	f.typeNative("good morning")
	f.sees("› good morning")
	f.typeNative("Enter")
	f.asked(3)
	f.sees("Good morning.")
	tl.await(agency.Waiting)
	if turns := len(f.turns()); turns != 4 {
		t.Errorf("the model was asked %d times, want 4", turns)
	}
	f.agency(nil, "stop", string(run.ID))
	f.checkGone(run.ID)
}

// The agent's terminal is outside of the sandbox, and what it allows is done inside.
func nativeInSandbox(t *testing.T, binary string, a agent) {
	f := newFixture(t, binary, a, []modelserver.Turn{touch, {Text: "It is made."}})
	f.addConfig("[sandbox]\nenv = [\"SCRIPTED_KEY\"]\n")
	run := f.start(a, append([]string{"--mode", "protocol", "--sandbox", "process"}, a.speaks...)...)
	tl := f.watch(run)
	tl.await(agency.NeedsInput)
	f.join(string(run.ID))
	f.allowNative(a)
	tl.await(agency.Waiting)
	if !f.made(run) {
		t.Error("the command was not run")
	}
}

func (f *fixture) nativeSocket() string { return filepath.Join(f.dir, "native") }

// join opens the agent's own terminal in a terminal of the user.
func (f *fixture) join(run string) {
	f.t.Helper()
	f.output("tmux", "-S", f.nativeSocket(), "-f", os.DevNull, "new-session", "-d", "-x", "120", "-y", "40", f.binary+" attach --native "+run+" || sleep 60")
	f.t.Cleanup(func() { _, _ = f.command("tmux", "-S", f.nativeSocket(), "kill-server") })
}

// sees waits until the agent's own terminal shows a text.
func (f *fixture) sees(text string) {
	f.t.Helper()
	shown := ""
	defer func() {
		if f.t.Failed() {
			f.t.Logf("the agent's own terminal:\n%s", shown)
		}
	}()
	f.until("the agent's own terminal with "+text, func() bool {
		shown, _ = f.command("tmux", "-S", f.nativeSocket(), "capture-pane", "-p")
		return strings.Contains(shown, text)
	})
}

// allowNative allows what the agent asks, in its own terminal, which drops a key that comes right after
// it began to show that.
func (f *fixture) allowNative(a agent) {
	f.t.Helper()
	f.sees(a.joins.shows)
	var pressed time.Time
	f.until("a terminal in which nothing asks", func() bool {
		shown, _ := f.command("tmux", "-S", f.nativeSocket(), "capture-pane", "-p")
		if !strings.Contains(shown, a.joins.shows) {
			return true
		}
		if time.Since(pressed) >= again {
			f.typeNative(a.joins.allow)
			pressed = time.Now()
		}
		return false
	})
}

func (f *fixture) typeNative(keys ...string) {
	f.t.Helper()
	f.output("tmux", append([]string{"-S", f.nativeSocket(), "send-keys"}, keys...)...)
}
