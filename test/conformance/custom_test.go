package conformance_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agency"
	"agency/internal/api"
	"agency/test/conformance/modelserver"
)

// A program that agency does not know, here Copilot under another name, reports nothing, so it is
// active from its start to its end, at work, at rest and with a dialog. Its dialogs are for the
// user: agency types nothing there.
func TestCustomRunner(t *testing.T) {
	t.Parallel()
	binary, a := installed(t, "copilot")
	known := a.home
	a.runner, a.home = "any", func(t *testing.T, dir, repo, url string) []string {
		return append(known(t, dir, repo, url), "COPILOT_HOME="+filepath.Join(dir, "untrusting"))
	}
	f := newFixture(t, binary, a, modelserver.Scenario{
		{Text: "I make it.", Shell: "touch made.txt"},
		{Text: "It is made."},
		{Text: "I make another.", Shell: "touch another.txt"},
	})
	f.addConfig(`default_args = ["-i", "Do what {prompt_file} says."]`) // of the runner, whose table is the last
	run := f.start(a)
	tl := f.watch(run)
	made := func(name string) bool {
		_, err := os.Stat(filepath.Join(run.Worktree, name))
		return err == nil
	}

	const trust, leave = "Do you trust the files in this folder?", "Do you want to run this command?"
	f.refuses(run, trust)
	if requests := f.model.Requests(); len(requests) > 0 {
		t.Errorf("it began to work in a folder that the user does not trust: %+v", requests)
	}
	f.press(run, "Enter") // the user trusts the folder
	if heard := f.asked(0); !strings.Contains(heard, filepath.Join(run.Worktree, agency.PromptFile)) {
		t.Errorf("the model heard %q", heard)
	}
	f.refuses(run, leave)
	f.press(run, "Enter") // the user allows the command
	f.shown(run, "It is made.")
	if !made("made.txt") {
		t.Error("the command did not run")
	}

	f.until("a message that comes after the person's typing", func() bool {
		out, err := f.command(binary, "send", run.Handle, "make another")
		return err == nil && strings.Contains(out, "delivered")
	})
	if heard := f.asked(2); !strings.Contains(heard, "make another") {
		t.Errorf("the model heard %q", heard)
	}
	f.refuses(run, leave)
	if made("another.txt") {
		t.Error("a command ran without leave")
	}
	checkHolds(t, f.output(binary, "explain", run.Handle), "alive, and nothing known", "ignored: the status file is as agency wrote it")
	f.checkAlive(run.ID)
	var stopped api.RunResponse
	f.agency(&stopped, "stop", run.Handle)
	if stopped.Run.State != agency.Killed {
		t.Errorf("got %s, want killed", stopped.Run.State)
	}
	f.checkGone(run.ID)
	tl.await(agency.LabelKilled)
	tl.check(agency.LabelKilled) // it was active before, and nothing else
}

// refuses waits until the terminal of a run shows a question with the cursor on "Yes", and checks
// that neither send nor answer types there, and that neither suggests the other.
func (f *fixture) refuses(run api.Run, question string) {
	f.t.Helper()
	f.shown(run, question)
	refused := func(args ...string) string {
		out, err := f.command(f.binary, args...)
		if err == nil {
			f.t.Fatalf("agency %s: %s", strings.Join(args, " "), out)
		}
		return err.Error()
	}
	var sent string
	f.until("a refusal for the dialog, when the person has typed", func() bool {
		sent = refused("send", run.Handle, "yes")
		return !strings.Contains(sent, "the user is typing")
	})
	checkHolds(f.t, sent, "E_INPUT_REFUSED", "shows a dialog", question, "agency attach")
	for _, text := range []string{"allow", "yes"} {
		answered := refused("answer", run.Handle, text)
		checkHolds(f.t, answered, "E_INVALID_STATE", "is active and waits for no answer", "look at its terminal: agency attach")
		if strings.Contains(answered, "agency send") {
			f.t.Errorf("it leads to typing into the dialog: %s", answered)
		}
	}
	checkHolds(f.t, f.screen(run), question, "❯ 1. Yes")
}

func checkHolds(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("nothing of %q in:\n%s", part, text)
		}
	}
}
