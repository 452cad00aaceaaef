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

// askingLeave returns a run whose agent asks for permission, and the request that it shows.
func askingLeave(t *testing.T, w *world) (*agency.Run, *wrapper, *agency.Request) {
	t.Helper()
	r, p := w.started("fix-login")
	w.tell(p, agency.Evidence{Signal: agency.SignalPrompt}, agency.Evidence{Signal: agency.SignalAsked, ID: "a", Kind: agency.AsksPermission, Tool: "Bash", Text: "make"})
	w.watcher.hints <- filepath.Join(p.dir, agency.EventsFile)
	synctest.Wait()
	request := w.sup.Observer.Derive(w.run(r.ID)).Request
	if request == nil {
		t.Fatal("nothing is asked")
	}
	return r, p, request
}

func allow(r *agency.Run, promptID string) supervisor.AnswerRequest {
	return supervisor.AnswerRequest{Ref: r.Handle, PromptID: promptID, Reply: agency.Reply{Decision: agency.Allow}}
}

// Keys are pressed once the terminal shows the request, again when they came too early, and the
// agent's reaction confirms them.
func TestAnswerRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, p, request := askingLeave(t, w)
		looks := 0
		w.harness.AnswerFunc = func(agency.Reply) (string, bool, error) {
			looks++
			return "1", looks > 3, nil // the dialog is drawn after it is reported
		}
		p.link.KeysFunc = func(string) {
			if len(p.link.keys) == 2 { // the first ones came too early
				w.tell(p, agency.Evidence{Signal: agency.SignalToolEnded, ID: "a"})
				w.watcher.hints <- filepath.Join(p.dir, agency.EventsFile)
			}
		}
		_, answered, err := w.sup.Input.Answer(t.Context(), allow(r, request.PromptID()))
		if err != nil || !answered.Confirmed || !slices.Equal(p.link.keys, []string{"1", "1"}) {
			t.Errorf("got %+v, %v, keys %q", answered, err, p.link.keys)
		}
		if w.count(r.ID, agency.InputDelivered) != 1 {
			t.Error("the record does not tell of the answer")
		}
		// Too late: nothing is typed any more.
		if _, _, err := w.sup.Input.Answer(t.Context(), allow(r, request.PromptID())); codeOf(err) != agency.CodeInvalidState {
			t.Errorf("a second answer: %v", err)
		}
		if _, _, err := w.sup.Input.Answer(t.Context(), allow(r, "")); codeOf(err) != agency.CodeInvalidState || len(p.link.keys) != 2 {
			t.Errorf("an answer to nothing: %v, keys %q", err, p.link.keys)
		}
	})
}

// An answer without a visible reaction is not confirmed; one that cannot be given types nothing.
func TestAnswerRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, p, request := askingLeave(t, w)
		id := request.PromptID()
		refused := func(what string, req supervisor.AnswerRequest, want agency.Code) {
			t.Helper()
			if _, _, err := w.sup.Input.Answer(t.Context(), req); codeOf(err) != want || len(p.link.keys) > 0 {
				t.Errorf("%s: %v, keys %q", what, err, p.link.keys)
			}
		}
		refused("another prompt", allow(r, "b@1"), agency.CodeInvalidState)
		refused("a text for a permission", supervisor.AnswerRequest{Ref: r.Handle, Reply: agency.Reply{Text: "yes"}}, agency.CodeUsage)
		refused("a reason in a terminal", supervisor.AnswerRequest{Ref: r.Handle, Reply: agency.Reply{Decision: agency.Deny, Text: "no"}}, agency.CodeInputRefused)
		refused("no answer", supervisor.AnswerRequest{Ref: r.Handle}, agency.CodeUsage)
		refused("a terminal that shows something else", allow(r, id), agency.CodeInvalidState)
		w.harness.AnswerFunc = func(agency.Reply) (string, bool, error) {
			return "", true, agency.Errorf(agency.CodeInputRefused, "no such option")
		}
		refused("no such option", allow(r, id), agency.CodeInputRefused)

		w.harness.AnswerFunc = func(agency.Reply) (string, bool, error) { return "1", true, nil }
		if _, answered, err := w.sup.Input.Answer(t.Context(), allow(r, id)); err != nil || answered.Confirmed {
			t.Errorf("an agent that takes no key: %+v, %v", answered, err)
		}
	})
}

// An agent that ends after the key may never have read it: its answer is not confirmed.
func TestAnswerAtTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, p, request := askingLeave(t, w)
		w.harness.AnswerFunc = func(agency.Reply) (string, bool, error) { return "1", true, nil }
		p.link.KeysFunc = func(string) { w.call(func() { p.mustEnd(t, agency.Exit{ExitCode: 1}) }) }
		_, answered, err := w.sup.Input.Answer(t.Context(), allow(r, request.PromptID()))
		if err != nil || answered.Confirmed || len(p.link.keys) != 1 || !w.run(r.ID).Attempt.State.Final() {
			t.Errorf("got %+v, %v, keys %q", answered, err, p.link.keys)
		}
	})
}

// A question in plain text is answered with a message, as long as the agent still asks it.
func TestAnswerWords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, p := w.started("fix-login")
		w.reports(r, `{"source":"report","signal":"report","report":"help","text":"Which way?"}`+"\n")
		synctest.Wait()
		id := w.sup.Observer.Derive(w.run(r.ID)).PromptID()
		if !strings.HasPrefix(id, "needs_input@") {
			t.Fatalf("prompt id %q", id)
		}
		if _, _, err := w.sup.Input.Send(t.Context(), r.Handle, "left", "needs_input@1"); codeOf(err) != agency.CodeInvalidState {
			t.Errorf("a message for another prompt: %v", err)
		}
		if _, _, err := w.sup.Input.Answer(t.Context(), allow(r, id)); codeOf(err) != agency.CodeUsage {
			t.Errorf("leave for a question: %v", err)
		}
		time.Sleep(time.Second)
		reply := supervisor.AnswerRequest{Ref: r.Handle, PromptID: id, Reply: agency.Reply{Text: "left"}}
		if _, answered, err := w.sup.Input.Answer(t.Context(), reply); err != nil || !answered.Confirmed || !slices.Equal(p.link.inputs, []string{"left"}) {
			t.Errorf("got %+v, %v, inputs %q", answered, err, p.link.inputs)
		}
		if _, _, err := w.sup.Input.Answer(t.Context(), reply); codeOf(err) != agency.CodeInvalidState || len(p.link.inputs) != 1 {
			t.Errorf("the same again: %v, inputs %q", err, p.link.inputs)
		}
	})
}

// An answer that was begun is finished and recorded, even if its client stops waiting.
func TestAnswerInterrupted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, p, request := askingLeave(t, w)
		ctx, cancel := context.WithCancel(t.Context())
		w.harness.AnswerFunc = func(agency.Reply) (string, bool, error) { return "1", true, nil }
		p.link.KeysFunc = func(string) {
			cancel()
			if len(p.link.keys) == 2 { // the first ones came too early
				w.tell(p, agency.Evidence{Signal: agency.SignalToolEnded, ID: "a"})
				w.watcher.hints <- filepath.Join(p.dir, agency.EventsFile)
			}
		}
		_, answered, err := w.sup.Input.Answer(ctx, allow(r, request.PromptID()))
		if err != nil || !answered.Confirmed || len(p.link.keys) != 2 || w.count(r.ID, agency.InputDelivered) != 1 {
			t.Errorf("got %+v, %v, keys %q", answered, err, p.link.keys)
		}
	})
}

// If the client stops waiting before the first key, no key is pressed.
func TestAnswerInterruptedBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, p, request := askingLeave(t, w)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _, err := w.sup.Input.Answer(ctx, allow(r, request.PromptID()))
		if !errors.Is(err, context.DeadlineExceeded) || len(p.link.keys) != 0 {
			t.Errorf("got %v, keys %q", err, p.link.keys)
		}
	})
}

// A message is typed to its end and recorded, even if its client stops waiting.
func TestInputInterrupted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, p := w.started("fix-login")
	ctx, cancel := context.WithCancel(t.Context())
	p.link.InputFunc = func(typing context.Context) error { cancel(); return typing.Err() }
	_, delivery, err := w.sup.Input.Send(ctx, "fix-login", "hello", "")
	if err != nil || !delivery.Confirmed || !slices.Equal(p.link.inputs, []string{"hello"}) {
		t.Errorf("got %+v, %v, inputs %q", delivery, err, p.link.inputs)
	}
	if w.run(r.ID).Attempt.InputAt == nil || w.count(r.ID, agency.InputDelivered) != 1 {
		t.Error("the record does not tell of the message")
	}
}

// A wrapper that does not answer may have typed: the record says so, and nothing counts as
// answered.
func TestInputWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, p := w.started("fix-login")
		w.says(r, asking("Which one?"))
		time.Sleep(time.Second)
		p.link.InputFunc = func(typing context.Context) error { <-typing.Done(); return typing.Err() }
		_, _, err := w.sup.Input.Send(t.Context(), "fix-login", "hello", "")
		if e := agency.AsError(err); codeOf(err) != agency.CodeInvalidState || !strings.Contains(e.Message, "may have been typed") || e.Hint == "" {
			t.Errorf("got %v", err)
		}
		if got := w.label(r.ID); got != agency.NeedsInput || w.count(r.ID, agency.InputDelivered) != 1 {
			t.Errorf("got %s and %d events", got, w.count(r.ID, agency.InputDelivered))
		}
	})
}
