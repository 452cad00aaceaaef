package supervisor_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"agency"
	"agency/internal/supervisor"
)

// speaking returns a run in the mode protocol, whose wrapper takes everything that is said.
func speaking(t *testing.T, w *world) (*agency.Run, *wrapper, *[]agency.Saying) {
	t.Helper()
	var p *wrapper
	w.tmux.OnStart = func(l agency.Launch) error {
		if l.Mode != agency.ModeProtocol || l.Headless {
			t.Errorf("the launch has mode %q, headless %t", l.Mode, l.Headless)
		}
		p = w.wrap(l)
		return p.begin()
	}
	req := w.request("fix-login")
	req.Spec.Mode = agency.ModeProtocol
	r, err := w.createRun(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	said := &[]agency.Saying{}
	p.link.SayFunc = func(s agency.Saying) (agency.Delivery, error) {
		*said = append(*said, s)
		return agency.Delivery{Confirmed: true, Effect: agency.EffectTaken}, nil
	}
	return r, p, said
}

func asks(id, tool string) agency.Evidence {
	return agency.Evidence{Source: agency.FromProtocol, Signal: agency.SignalAsked, ID: id, Kind: agency.AsksPermission, Tool: tool}
}

// In the mode protocol no screen is read and no key is pressed, whatever is asked of the run.
func TestProtocolTouchesNoTerminal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.harness.ScreenFunc, w.harness.SightFunc = boxes, composing
		r, p, said := speaking(t, w)
		w.tmux.show("? Run rm?")
		w.tell(p, agency.Evidence{Source: agency.FromProtocol, Signal: agency.SignalPrompt}, asks("a", "Bash"))
		w.sup.Observer.ReadEvidence(t.Context(), r.ID)
		if got := w.label(r.ID); got != agency.NeedsInput {
			t.Fatalf("status %s", got)
		}
		answer := func(promptID string) error {
			_, _, err := w.sup.Input.Answer(t.Context(), supervisor.AnswerRequest{Ref: r.Handle, PromptID: promptID, Reply: agency.Reply{Decision: agency.Allow}})
			return err
		}
		answered := errors.Join(answer(""), answer("a"))
		_, _, sent := w.sup.Input.Send(t.Context(), r.Handle, "hello", "")
		_, _, interrupted := w.sup.Input.Interrupt(t.Context(), r.Handle)
		_, _, shown := w.sup.Query.Output(t.Context(), r.Handle, 10)
		if err := errors.Join(answered, sent, interrupted, shown); err != nil {
			t.Error(err)
		}
		w.sup.Observer.Look(t.Context(), r.ID)
		w.sup.Observer.LookAtDialog(t.Context(), r.ID)
		if err := w.sup.Wrappers.Update(t.Context(), r.ID, 1, agency.WrapperUpdate{Output: new(time.Now()), Changed: new(time.Now())}); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute) // of the bubble: every timer of the observer has fired
		if len(p.link.inputs)+len(p.link.keys) > 0 || w.tmux.looks > 0 {
			t.Errorf("typed %q, pressed %q, looked %d times", p.link.inputs, p.link.keys, w.tmux.looks)
		}
		if len(*said) != 4 || (*said)[0].ID != "a" || (*said)[2].Text != "hello" || (*said)[3].Kind != agency.SaysInterrupt {
			t.Errorf("said %+v", *said)
		}
	})
}

// A wrapper that goes away, or stays silent, before it answers may have said it: the next one says again
// what this one has journalled. Nothing was said when the wrapper refused it.
func TestSaidPerhaps(t *testing.T) {
	t.Parallel()
	gone := &agency.Error{Code: agency.CodeInvalidState, Message: "not connected", Err: io.ErrUnexpectedEOF}
	for name, c := range map[string]struct {
		err     error
		perhaps bool
		words   string
	}{
		"gone":    {gone, true, "went away before it answered, and the agent may have got it"},
		"silent":  {context.DeadlineExceeded, true, "did not answer within 1m5s, and the agent may have got it"},
		"refused": {agency.Errorf(agency.CodeInputRefused, "it does not read"), false, "it does not read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				r, p, _ := speaking(t, w)
				p.link.SayFunc = func(agency.Saying) (agency.Delivery, error) { return agency.Delivery{}, c.err }
				_, _, sent := w.sup.Input.Send(t.Context(), r.Handle, "hello", "")
				_, _, interrupted := w.sup.Input.Interrupt(t.Context(), r.Handle)
				for _, err := range []error{sent, interrupted} {
					if agency.MayHaveTyped(err) != c.perhaps || !strings.Contains(err.Error(), c.words) || agency.AsError(err).Hint == "" {
						t.Errorf("got %v", err)
					}
				}
			})
		})
	}
}

// Of several open requests, an answer names one.
func TestAnswerOneOfSeveral(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, p, said := speaking(t, w)
		w.tell(p, asks("a", "Bash"), asks("b", "Write"))
		w.sup.Observer.ReadEvidence(t.Context(), r.ID)
		reply := agency.Reply{Decision: agency.Deny}
		_, _, err := w.sup.Input.Answer(t.Context(), supervisor.AnswerRequest{Ref: r.Handle, Reply: reply})
		if codeOf(err) != agency.CodeUsage || !strings.Contains(err.Error(), "Write? (b)") {
			t.Errorf("got %v", err)
		}
		if _, _, err = w.sup.Input.Answer(t.Context(), supervisor.AnswerRequest{Ref: r.Handle, PromptID: "b", Reply: reply}); err != nil || (*said)[0].ID != "b" {
			t.Errorf("got %v, said %+v", err, *said)
		}
		_, _, err = w.sup.Input.Answer(t.Context(), supervisor.AnswerRequest{Ref: r.Handle, PromptID: "a", Reply: agency.Reply{Text: "yes"}})
		if codeOf(err) != agency.CodeUsage || len(*said) != 1 {
			t.Errorf("a text for a permission: got %v", err)
		}
	})
}

// An id may hold any character. An answer to an older request is not given to a new one of its id.
func TestAnswerTheRequestThatWasSeen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, p, said := speaking(t, w)
		w.tell(p, asks("call@1", "Bash"))
		w.sup.Observer.ReadEvidence(t.Context(), r.ID)
		older := w.sup.Observer.Derive(w.run(r.ID)).PromptID()
		answer := func(promptID string) error {
			_, _, err := w.sup.Input.Answer(t.Context(), supervisor.AnswerRequest{Ref: r.Handle, PromptID: promptID, Reply: agency.Reply{Decision: agency.Allow}})
			return err
		}
		if err := answer(older); err != nil || (*said)[0].ID != "call@1" {
			t.Errorf("got %v, said %+v", err, *said)
		}
		time.Sleep(time.Second)
		w.tell(p, agency.Evidence{Source: agency.FromProtocol, Signal: agency.SignalAnswered, ID: "call@1"}, asks("call@1", "rm"))
		w.sup.Observer.ReadEvidence(t.Context(), r.ID)
		if err := answer(older); codeOf(err) != agency.CodeInvalidState || len(*said) != 1 {
			t.Errorf("the older one: got %v, said %+v", err, *said)
		}
	})
}

// An agent that outlives its wrapper gets another one, also when the first try does not start.
func TestWrapperIsReplaced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, p, _ := speaking(t, w)
		second := &wrapper{w: w, id: p.id, attempt: 1, token: p.token, dir: p.dir, link: &fakeLink{}, start: p.start}
		second.start.Wrapper = agency.Process{PID: 200, StartTicks: 9, BootID: "boot"}
		w.tmux.OnReplace = func() error {
			w.attempts.change(p.dir, func(h *onHost) { h.locked = true })
			return errors.Join(second.connect(), second.update())
		}
		die := func(p *wrapper) {
			w.attempts.change(p.dir, func(h *onHost) { h.locked = false })
			w.sup.Wrappers.Disconnect(p.id, p.attempt, p.link)
			time.Sleep(time.Second)
		}
		die(p)
		if a := w.run(r.ID).Attempt; a.State != agency.Running || a.Wrapper.PID != 200 || w.count(r.ID, agency.WrapperReplaced) != 1 {
			t.Errorf("got %s, wrapper %+v", a.State, a.Wrapper)
		}
		third := &wrapper{w: w, id: p.id, attempt: 1, token: p.token, dir: p.dir, link: &fakeLink{}, start: p.start}
		third.start.Wrapper = agency.Process{PID: 300, StartTicks: 9, BootID: "boot"}
		works := w.tmux.OnReplace
		w.tmux.OnReplace = func() error {
			second, w.tmux.OnReplace = third, works
			return context.Canceled // as when the daemon stops
		}
		die(second)
		time.Sleep(20 * time.Second)
		if a := w.run(r.ID).Attempt; a.State != agency.Running || a.Wrapper.PID != 300 {
			t.Errorf("got %s, wrapper %+v", a.State, a.Wrapper)
		}
	})
}

// An agent that three wrappers cannot adopt is ended, and the record says by whom.
func TestNoWrapperAdopts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, p, _ := speaking(t, w)
		var tries atomic.Int32
		w.tmux.OnReplace = func() error {
			if tries.Add(1) == 1 {
				return errors.New("no tmux")
			}
			return nil
		}
		w.attempts.change(p.dir, func(h *onHost) { h.locked = false })
		w.sup.Wrappers.Disconnect(p.id, p.attempt, p.link)
		time.Sleep(20 * time.Second)
		if a := w.run(r.ID).Attempt; a.State != agency.Running || tries.Load() != 2 {
			t.Errorf("after %d wrappers: %s", tries.Load(), a.State)
		}
		time.Sleep(time.Minute)
		if a := w.run(r.ID).Attempt; a.State != agency.Failed || tries.Load() != 3 || a.Error != "no wrapper could adopt its agent, so agency ended it" {
			t.Errorf("after %d wrappers: %s: %s", tries.Load(), a.State, a.Error)
		}
	})
}

// The exit status of an agent that ended while no wrapper lived is not lost, also when the system
// fails to read it at first.
func TestHeldExit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, p, _ := speaking(t, w)
		w.attempts.dead.Store(true)
		w.attempts.change(p.dir, func(h *onHost) {
			h.locked, h.held = false, &agency.Exit{RunID: r.ID, Attempt: 1, EndedBy: agency.EndedByRunner, EndedAt: time.Now(), ExitCode: 3}
			h.unheld = syscall.EIO
		})
		w.sup.Wrappers.Disconnect(p.id, p.attempt, p.link)
		time.Sleep(time.Minute)
		if a := w.run(r.ID).Attempt; a.State != agency.Running {
			t.Errorf("before it can be read: %s, %s", a.State, a.Error)
		}
		w.attempts.change(p.dir, func(h *onHost) { h.unheld = nil })
		time.Sleep(2 * time.Second)
		if a := w.run(r.ID).Attempt; a.State != agency.Failed || a.ExitCode == nil || *a.ExitCode != 3 || a.EndedBy != agency.EndedByRunner {
			t.Errorf("got %+v", a)
		}
	})
}
