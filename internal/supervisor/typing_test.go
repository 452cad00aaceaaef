package supervisor_test

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agency"
	"agency/internal/supervisor"
)

// composing reads an agent whose terminal shows an input box, "> text", a dialog, "? text", or
// neither.
func composing(lines []string) agency.Sight {
	if text, ok := strings.CutPrefix(lines[0], "> "); ok {
		return agency.Sight{Composer: &text}
	}
	if text, ok := strings.CutPrefix(lines[0], "? "); ok {
		return agency.Sight{Dialog: text}
	}
	return agency.Sight{Boxless: true}
}

// No way of typing bypasses the look at the terminal, whatever the record contains.
func TestNothingIsTypedIntoADialog(t *testing.T) {
	t.Parallel()
	records := map[string][]agency.Evidence{
		"nothing":  nil,
		"at work":  {{Signal: agency.SignalPrompt}},
		"at rest":  {{Signal: agency.SignalPrompt}, {Signal: agency.SignalTurnEnded}},
		"failed":   {{Signal: agency.SignalPrompt}, {Signal: agency.SignalFailed, Class: agency.ErrorOther}},
		"answered": {{Signal: agency.SignalAsked, ID: "a", Kind: agency.AsksPermission}, {Signal: agency.SignalAnswered, ID: "a"}},
	}
	for name, evidence := range records {
		for screen, want := range map[string]string{"? Run rm?": "shows a dialog", "loading": "shows no input box"} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.harness.SightFunc = composing
				r, p := w.started("fix-login")
				w.reports(r, `{"source":"report","signal":"report","report":"help","text":"Which way?"}`+"\n")
				w.tell(p, evidence...)
				w.watcher.hints <- filepath.Join(p.dir, agency.EventsFile)
				synctest.Wait()
				w.tmux.show(screen)
				ways := map[string]func() error{
					"send": func() error { _, _, err := w.sup.Input.Send(t.Context(), r.Handle, "hello", ""); return err },
					"answer": func() error {
						_, _, err := w.sup.Input.Answer(t.Context(), supervisor.AnswerRequest{Ref: r.Handle, Reply: agency.Reply{Text: "left"}})
						return err
					},
				}
				for way, do := range ways {
					e := agency.AsError(do())
					if way == "answer" && e.Code == agency.CodeInvalidState && !strings.Contains(e.Hint, "send") {
						continue // the agent waits for nothing
					}
					if e.Code != agency.CodeInputRefused || !strings.Contains(e.Message, want) || !strings.Contains(e.Hint, "agency attach") || strings.Contains(e.Hint, "send") {
						t.Errorf("%s, %s, %s: got %v, hint %q", name, screen, way, e, e.Hint)
					}
				}
				if len(p.link.inputs)+len(p.link.keys) > 0 {
					t.Errorf("%s, %s: typed %q, %q", name, screen, p.link.inputs, p.link.keys)
				}
			})
		}
	}
}

// A refused answer never becomes a message.
func TestRefusedAnswerLeadsToNoMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, _ := w.started("fix-login")
	_, _, err := w.sup.Input.Answer(t.Context(), allow(r, ""))
	if e := agency.AsError(err); e.Code != agency.CodeInvalidState || strings.Contains(e.Hint, "send") || !strings.Contains(e.Hint, "agency attach") {
		t.Errorf("got %v, hint %q", err, e.Hint)
	}
}

// A dialog that opens after the text gets no Enter, and the error reports that the text was typed.
func TestDialogBeforeEnter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.harness.SightFunc = composing
		r, p := w.started("fix-login")
		w.tmux.show("> ")
		p.link.TypedFunc = func() { w.tmux.show("? Run rm?") }
		p.link.EnterFunc = func() agency.Delivery { t.Error("Enter was pressed"); return agency.Delivery{} }
		if _, _, err := w.sup.Input.Send(t.Context(), r.Handle, "hello", ""); codeOf(err) != agency.CodeInputRefused {
			t.Errorf("got %v", err)
		}
	})
}

// An answer's keys are pressed only if the terminal shows the same dialog at the last moment.
func TestKeysForADialogThatChanged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, p, request := askingLeave(t, w)
		looks := 0
		w.harness.AnswerFunc = func(agency.Reply) (string, bool, error) {
			looks++
			return "1", looks == 1, nil
		}
		if _, _, err := w.sup.Input.Answer(t.Context(), allow(r, request.PromptID())); codeOf(err) != agency.CodeInvalidState || len(p.link.keys) > 0 {
			t.Errorf("got %v, keys %q", err, p.link.keys)
		}
	})
}

// The agent's reaction confirms a message: other output proves nothing.
func TestConfirm(t *testing.T) {
	t.Parallel()
	prompt := []agency.Evidence{{Signal: agency.SignalPrompt}}
	for name, c := range map[string]struct {
		before []agency.Evidence // what the agent reported before the message
		after  string            // what its terminal shows after Enter
		tells  []agency.Evidence // what it reports then
		want   agency.Delivery
	}{
		"a prompt":           {nil, "> ", prompt, agency.Delivery{Confirmed: true, Effect: agency.EffectPrompt}},
		"a prompt, dialog":   {nil, "? Run rm?", prompt, agency.Delivery{Confirmed: true, Effect: agency.EffectPrompt}},
		"queued":             {prompt, "> Ask anything", nil, agency.Delivery{Confirmed: true, Effect: agency.EffectTurn}},
		"a turn":             {nil, "> ", []agency.Evidence{{Source: agency.FromTitle, Signal: agency.SignalBusy}}, agency.Delivery{Confirmed: true, Effect: agency.EffectTurn}},
		"swallowed":          {nil, "> hello", nil, agency.Delivery{Effect: agency.EffectComposer, Composer: "hello"}},
		"swallowed, at work": {prompt, "> hello", prompt, agency.Delivery{Effect: agency.EffectComposer, Composer: "hello"}},
		"a command":          {[]agency.Evidence{{Signal: agency.SignalTurnEnded}}, "> ", nil, agency.Delivery{Effect: agency.EffectOutput}},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.harness.SightFunc = composing
			r, p := w.started("fix-login")
			w.tell(p, c.before...)
			w.tmux.show("> ")
			p.link.TypedFunc = func() { w.tmux.show("> hello") }
			p.link.EnterFunc = func() agency.Delivery {
				time.Sleep(time.Second)
				w.tmux.show(c.after)
				w.tell(p, c.tells...)
				return agency.Delivery{Effect: agency.EffectOutput}
			}
			_, got, err := w.sup.Input.Send(t.Context(), r.Handle, "hello", "")
			if err != nil || got != c.want {
				t.Errorf("%s: got %+v, %v, want %+v", name, got, err, c.want)
			}
			if answered := w.run(r.ID).Attempt.InputAt != nil; answered == (c.want.Effect == agency.EffectComposer) {
				t.Errorf("%s: the record takes it for answered: %t", name, answered)
			}
		})
	}
}

// Enter waits until a busy agent has drawn the text: otherwise the agent could read both at once,
// and show at no time that the text was in its input box.
func TestEnterWaitsForTheText(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.harness.SightFunc = composing
		r, p := w.started("fix-login")
		w.tell(p, agency.Evidence{Signal: agency.SignalPrompt})
		w.tmux.show("> ")
		p.link.TypedFunc = func() { w.after(time.Second, func() { w.tmux.show("> hello") }) }
		p.link.EnterFunc = func() agency.Delivery {
			w.tmux.show("> ")
			return agency.Delivery{Effect: agency.EffectOutput}
		}
		_, got, err := w.sup.Input.Send(t.Context(), r.Handle, "hello", "")
		if want := (agency.Delivery{Confirmed: true, Effect: agency.EffectTurn}); err != nil || got != want {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	})
}

// A slow agent draws the text only after Enter; that it leaves the input box then confirms it, too.
func TestConfirmOfATextDrawnLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.harness.SightFunc = composing
		r, p := w.started("fix-login")
		w.tell(p, agency.Evidence{Signal: agency.SignalPrompt})
		w.tmux.show("> ")
		p.link.EnterFunc = func() agency.Delivery {
			w.tmux.show("> hello")
			w.after(500*time.Millisecond, func() { w.tmux.show("> ") })
			return agency.Delivery{Effect: agency.EffectOutput}
		}
		_, got, err := w.sup.Input.Send(t.Context(), r.Handle, "hello", "")
		if want := (agency.Delivery{Confirmed: true, Effect: agency.EffectTurn}); err != nil || got != want {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	})
}

// An Enter that became part of the text is pressed once more while the text is in the input box,
// and not after that.
func TestEnterAgain(t *testing.T) {
	t.Parallel()
	for behind, want := range map[string][]string{"> hello": {"\r"}, "? Run rm?": nil, "> ": nil} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.harness.SightFunc = composing
			r, p := w.started("fix-login")
			w.tell(p, agency.Evidence{Signal: agency.SignalTurnEnded})
			w.tmux.show("> ")
			p.link.TypedFunc = func() { w.tmux.show("> hello") }
			p.link.EnterFunc = func() agency.Delivery { return agency.Delivery{Effect: agency.EffectOutput} }
			p.link.BeforeKeys = func() { w.tmux.show(behind) }
			p.link.KeysFunc = func(string) {
				w.tmux.show("> ")
				w.tell(p, agency.Evidence{Signal: agency.SignalPrompt})
			}
			_, got, err := w.sup.Input.Send(t.Context(), r.Handle, "hello", "")
			if err != nil || !slices.Equal(p.link.keys, want) || got.Confirmed != (len(want) > 0) {
				t.Errorf("%s: got %+v, %v, keys %q", behind, got, err, p.link.keys)
			}
		})
	}
}

// A program that did not react gets no second Enter: it may read both at once.
func TestNoEnterForAStoppedProgram(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.harness.SightFunc = composing
		r, p := w.started("fix-login")
		w.tmux.show("> hello")
		p.link.EnterFunc = func() agency.Delivery { return agency.Delivery{Effect: agency.EffectNone} }
		_, got, err := w.sup.Input.Send(t.Context(), r.Handle, "hello", "")
		if err != nil || got.Confirmed || got.Composer != "hello" || len(p.link.keys) > 0 {
			t.Errorf("got %+v, %v, keys %q", got, err, p.link.keys)
		}
	})
}

func TestHolds(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a long message with words ", 20)
	for i, c := range []struct {
		composer, text string
		want           bool
	}{
		{"hello", "hello", true},
		{"", "hello", false},
		{"Ask Codex to do anything", "hello", false},
		{"say hello\n  to them\n", "say hello to them", true},
		{"a draft, then hello", "hello", true},
		{"[Pasted text #1 +29 lines]", "one\ntwo\nthree", true},
		{"…ssage with words a long message with words", long, true},
		{"a long message", long, false},
	} {
		sight := agency.Sight{Composer: &c.composer}
		if got := sight.Holds(c.text); got != c.want {
			t.Error(fmt.Sprint(i, ": got ", got))
		}
	}
	if (&agency.Sight{}).Holds("hello") {
		t.Error("no input box holds a text")
	}
}

// Nothing is added to a text that is in the terminal since an earlier message.
func TestUnsent(t *testing.T) {
	t.Parallel()
	enterless, entered := agency.Typing{Last: "hello"}, agency.Typing{Last: "hello", Moved: true}
	for name, c := range map[string]struct {
		last         agency.Typing
		screen, text string
		refused      bool
		typed        []string // before Enter
	}{
		"the same":                    {enterless, "> hello", "hello", false, nil},
		"another":                     {enterless, "> hello", "bye", true, nil},
		"the box is empty":            {enterless, "> ", "bye", false, []string{"bye"}},
		"other text":                  {enterless, "> something", "bye", false, []string{"bye"}},
		"no box, the same":            {enterless, "$", "hello", false, nil},
		"no box, another":             {enterless, "$", "bye", true, nil},
		"a dialog is there":           {enterless, "? Run rm?", "hello", true, nil},
		"entered, the same":           {entered, "> hello", "hello", false, nil},
		"entered, another":            {entered, "> hello", "bye", true, nil},
		"entered, the box is empty":   {entered, "> ", "hello", false, []string{"hello"}},
		"entered, a part of the box":  {entered, "> Say hello to me", "hello", false, []string{"hello"}},
		"entered, no box, the same":   {entered, "$", "hello", false, []string{"hello"}},
		"entered, no box, another":    {entered, "$", "bye", false, []string{"bye"}},
		"nothing was typed before it": {agency.Typing{}, "> hello", "hello", false, []string{"hello"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.harness.SightFunc = func(lines []string) agency.Sight {
					if lines[0] == "$" {
						return agency.Sight{}
					}
					return composing(lines)
				}
				r, p := w.started("fix-login")
				w.tmux.show(c.screen)
				p.link.last = c.last
				_, _, err := w.sup.Input.Send(t.Context(), r.Handle, c.text, "")
				if refused := agency.IsCode(err, agency.CodeInputRefused); refused != c.refused || err != nil && !refused || agency.MayHaveTyped(err) {
					t.Error(err)
				}
				if !slices.Equal(p.link.inputs, c.typed) {
					t.Errorf("typed %q, want %q", p.link.inputs, c.typed)
				}
			})
		})
	}
}

// A wrapper that goes away before it answers may have typed the message, and the record has that.
func TestWrapperGoneAfterEnter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.harness.SightFunc = composing
		r, p := w.started("fix-login")
		w.tmux.show("> hello")
		p.link.gone = &agency.Error{Code: agency.CodeInvalidState, Message: "not connected", Err: io.ErrUnexpectedEOF}
		_, _, err := w.sup.Input.Send(t.Context(), r.Handle, "hello", "")
		if !agency.MayHaveTyped(err) || !strings.Contains(err.Error(), "may have been typed") {
			t.Errorf("got %v", err)
		}
		if w.count(r.ID, agency.InputDelivered) != 1 {
			t.Error("the record does not have the message")
		}
	})
}

// A box that is painted late still shows the message before: a second message waits for it to empty.
func TestSecondMessageWaitsForTheFirst(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"bye", "hello"} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.harness.SightFunc = composing
			r, p := w.started("fix-login")
			p.link.last = agency.Typing{Last: "hello", Moved: true}
			w.tmux.show("> hello")
			time.AfterFunc(time.Second, func() { w.tmux.show("> ") })
			if _, _, err := w.sup.Input.Send(t.Context(), r.Handle, text, ""); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(p.link.inputs, []string{text}) {
				t.Errorf("typed %q, want %q", p.link.inputs, text)
			}
		})
	}
}
