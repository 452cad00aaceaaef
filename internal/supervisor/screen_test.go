package supervisor_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agency"
	"agency/internal/supervisor"
)

// show makes a terminal show other lines.
func (f *fakeTmux) show(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Screen = text
}

// boxes reads an agent that is known by its screen: an input box, a dialog of its program, or
// nothing recognisable.
func boxes(lines []string) []agency.Evidence {
	switch strings.Join(lines, "\n") {
	case "box":
		return []agency.Evidence{{Signal: agency.SignalSession, Event: "input", Confidence: 0.5}}
	case "trust?":
		return []agency.Evidence{{Signal: agency.SignalAsked, Event: "trust", Kind: agency.AsksDialog, Text: "Trust?", Confidence: 0.9}}
	default:
		return nil
	}
}

// A screen that stays the same says more once the agent's own reports have changed: its dialog is
// still there after a turn, and its input box ends a turn that its title missed.
func TestScreenThatStays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.harness.ScreenFunc = boxes
		r, p := w.started("fix-login")
		looks := func(screen string, want agency.Label, evidence ...agency.Evidence) {
			t.Helper()
			w.tmux.show(screen)
			w.tell(p, evidence...)
			w.sup.Observer.ReadEvidence(t.Context(), r.ID)
			w.sup.Observer.Look(t.Context(), r.ID)
			if got := w.label(r.ID); got != want {
				t.Errorf("%q after %+v: %s", screen, evidence, got)
			}
		}
		title := func(signal agency.Signal) agency.Evidence {
			return agency.Evidence{Source: agency.FromTitle, Signal: signal}
		}
		prompt := agency.Evidence{Source: agency.FromTranscript, Signal: agency.SignalPrompt}
		looks("trust?", agency.NeedsInput)
		looks("trust?", agency.Working, title(agency.SignalBusy))
		looks("trust?", agency.NeedsInput, title(agency.SignalResting))
		looks("box", agency.Waiting)
		looks("box", agency.Working, prompt, title(agency.SignalBusy))
		looks("box", agency.Waiting, title(agency.SignalResting))
		looks("box", agency.Waiting, prompt)
	})
}

// A message waits for the input box of an agent that starts slowly, and is never typed into
// anything else.
func TestInputWaitsForItsBox(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.harness.ScreenFunc = boxes
		r, p := w.started("fix-login")
		w.tmux.show("loading")
		sent := make(chan error, 1)
		go func() {
			_, _, err := w.sup.Input.Send(t.Context(), r.Handle, "hello", "")
			sent <- err
		}()
		time.Sleep(10 * time.Second)
		w.tmux.show("box") // some draw it before a dialog
		time.Sleep(time.Second)
		w.tmux.show("loading")
		time.Sleep(2 * time.Second)
		if len(p.link.inputs) > 0 || len(sent) > 0 {
			t.Fatalf("typed %q before there was an input box that stays", p.link.inputs)
		}
		w.tmux.show("box")
		if err := <-sent; err != nil || !slices.Equal(p.link.inputs, []string{"hello"}) {
			t.Errorf("got %v, typed %q", err, p.link.inputs)
		}
	})
}

func TestInputRefusedWithoutABox(t *testing.T) {
	t.Parallel()
	for screen, want := range map[string]string{
		"an unknown dialog: [Yes] [No]": "shows no input box yet",
		"trust?":                        "waits for an answer in its terminal",
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.harness.ScreenFunc = boxes
			r, p := w.started("fix-login")
			w.tmux.show(screen)
			_, _, err := w.sup.Input.Send(t.Context(), r.Handle, "hello", "")
			if codeOf(err) != agency.CodeInvalidState || !strings.Contains(err.Error(), want) || len(p.link.inputs) > 0 {
				t.Errorf("%s: got %v, typed %q", screen, err, p.link.inputs)
			}
			// What the agent itself reports takes precedence.
			w.tmux.show("an unknown screen")
			w.tell(p, agency.Evidence{Signal: agency.SignalSession, Conversation: "c"})
			w.watcher.hints <- filepath.Join(p.dir, agency.EventsFile)
			synctest.Wait()
			if _, _, err := w.sup.Input.Send(t.Context(), r.Handle, "hello", ""); err != nil || len(p.link.inputs) != 1 {
				t.Errorf("%s: an agent that spoke: %v, typed %q", screen, err, p.link.inputs)
			}
		})
	}
}

// A request that a title reports is answered once the screen shows what it is about, and only for
// that.
func TestAnswerOfTitle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		dialog := func(command string) []agency.Evidence {
			return []agency.Evidence{{
				Signal: agency.SignalAsked, Event: agency.EventComplete, ID: command, Kind: agency.AsksPermission, Tool: "Shell", Text: command, Confidence: 0.8,
			}}
		}
		w.harness.ScreenFunc = func(lines []string) []agency.Evidence {
			if command, ok := strings.CutPrefix(lines[0], "run: "); ok {
				return dialog(command)
			}
			return nil
		}
		w.harness.AnswerFunc = func(agency.Reply) (string, bool, error) { return "1", true, nil }
		r, p := w.started("fix-login")
		w.tmux.show("something else")
		w.tell(p, agency.Evidence{Source: agency.FromTitle, Signal: agency.SignalAsked, Kind: agency.AsksQuestion, Text: "it asks for something"})
		w.watcher.hints <- filepath.Join(p.dir, agency.EventsFile)
		synctest.Wait()
		vague := w.sup.Observer.Derive(w.run(r.ID)).PromptID()
		if _, _, err := w.sup.Input.Answer(t.Context(), allow(r, vague)); codeOf(err) != agency.CodeInputRefused {
			t.Errorf("a dialog that cannot be read: %v", err)
		}

		time.Sleep(time.Second)
		w.tmux.show("run: ls")
		_, _, err := w.sup.Input.Answer(t.Context(), allow(r, vague))
		request := w.sup.Observer.Derive(w.run(r.ID)).Request
		if codeOf(err) != agency.CodeInvalidState || len(p.link.keys) > 0 || request.Text != "ls" {
			t.Errorf("an answer to an unknown request: %v, keys %q, request %+v", err, p.link.keys, request)
		}

		time.Sleep(time.Second)
		w.tmux.show("run: rm -r .")
		_, _, err = w.sup.Input.Answer(t.Context(), allow(r, request.PromptID()))
		next := w.sup.Observer.Derive(w.run(r.ID)).Request
		if codeOf(err) != agency.CodeInvalidState || len(p.link.keys) > 0 || next.Text != "rm -r ." {
			t.Errorf("an answer to the dialog before: %v, keys %q, request %+v", err, p.link.keys, next)
		}

		p.link.KeysFunc = func(string) {
			w.tell(p, agency.Evidence{Source: agency.FromTitle, Signal: agency.SignalBusy})
			w.watcher.hints <- filepath.Join(p.dir, agency.EventsFile)
		}
		req := supervisor.AnswerRequest{Ref: r.Handle, PromptID: next.PromptID(), Reply: agency.Reply{Decision: agency.Allow}}
		if _, answered, err := w.sup.Input.Answer(t.Context(), req); err != nil || !answered.Confirmed || !slices.Equal(p.link.keys, []string{"1"}) {
			t.Errorf("got %+v, %v, keys %q", answered, err, p.link.keys)
		}
		if got := w.sup.Observer.Derive(w.run(r.ID)); got.Label != agency.Working {
			t.Errorf("got %s after the answer", got.Label)
		}
	})
}

// A client whose time is over before anything was read gets the screen, as at any later moment.
func TestScreenAtOnceTooLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, _ := w.started("fix-login")
		_, seen, err := w.sup.Query.Screen(t.Context(), "fix-login", "", 0)
		if err != nil {
			t.Fatal(err)
		}
		late, cancel := context.WithTimeout(t.Context(), 0)
		defer cancel()
		got, screen, err := w.sup.Query.Screen(late, "fix-login", seen.Revision, 0)
		if !errors.Is(err, context.DeadlineExceeded) || got == nil || got.ID != r.ID || screen.Revision != seen.Revision {
			t.Errorf("%+v %+v, %v", got, screen, err)
		}
	})
}
