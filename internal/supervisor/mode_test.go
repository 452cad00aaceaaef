package supervisor_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agency"
)

// resting returns a run in the mode protocol whose agent rests in a conversation, which it can
// continue in every mode. began is called when the agent of a later attempt has started.
func resting(t *testing.T, w *world, began func(*wrapper)) (*agency.Run, *wrapper) {
	t.Helper()
	w.harness.BuildFunc = func(r agency.CommandRequest, c *agency.Command) { c.ConversationID = r.ConversationID }
	r, p, _ := speaking(t, w)
	w.tell(p, agency.Evidence{Source: agency.FromProtocol, Signal: agency.SignalTurnEnded})
	w.sup.Observer.ReadEvidence(t.Context(), r.ID)
	w.tmux.OnStart = func(l agency.Launch) error {
		p := w.wrap(l)
		if err := p.begin(); err != nil {
			return err
		}
		began(p)
		return nil
	}
	return r, p
}

// An agent that ends at once, or that a user stops, does not continue its conversation.
func TestModeOfAnAgentThatEnds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		then func(w *world, p *wrapper)
		code agency.Code
		says string
	}{
		"by itself": {func(_ *world, p *wrapper) { _ = p.end(agency.Exit{EndedBy: agency.EndedByRunner}) }, agency.CodeRunnerStartFailed, "ended at once: exit 0"},
		"by a stop": {func(w *world, _ *wrapper) {
			w.after(time.Second, func() { _, _ = w.sup.StopRun(w.t.Context(), "fix-login") })
		}, agency.CodeInvalidState, "was stopped before"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				resting(t, w, func(p *wrapper) { test.then(w, p) })
				req := w.resumeRequest("fix-login")
				req.Mode, req.Idle = agency.ModeTerminal, true
				_, err := w.sup.ResumeRun(t.Context(), req)
				wantCode(t, err, test.code)
				if !strings.Contains(err.Error(), test.says) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

// A message that the agent takes while its end is prepared keeps it from being ended.
func TestModeOfAnAgentThatBegins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, p := resting(t, w, func(*wrapper) {})
		w.harness.BuildFunc = func(r agency.CommandRequest, c *agency.Command) {
			c.ConversationID = r.ConversationID
			w.tell(p, agency.Evidence{Source: agency.FromProtocol, Signal: agency.SignalPrompt})
		}
		req := w.resumeRequest("fix-login")
		req.Mode, req.Idle = agency.ModeTerminal, true
		_, err := w.sup.ResumeRun(t.Context(), req)
		wantCode(t, err, agency.CodeInvalidState)
		if e := agency.AsError(err); e.Details["busy"] != true {
			t.Errorf("got %+v", e)
		}
		if a := w.run(r.ID).Attempt; a.Number != 1 || a.State != agency.Running || a.StopRequestedAt != nil {
			t.Errorf("got %+v", a)
		}
	})
}

// What refuses a mode names the run, its mode, and a way out that does not end the agent.
func TestModeThatDoesNotFit(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		then       func(w *world)
		says, hint string
	}{
		"no protocol": {func(w *world) {
			w.harness.BuildErr = agency.Errorf(agency.CodeSpecInvalid, "agency does not speak a protocol of cat").WithHint("--mode terminal")
		}, "fix-login stays in the mode terminal: agency does not speak a protocol of cat", "for a new run: --mode terminal"},
		"no conversation": {func(w *world) {
			w.harness.BuildFunc = func(_ agency.CommandRequest, c *agency.Command) { c.ConversationID = "" }
		}, "fix-login has no conversation", "agency run --mode protocol"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r, _ := w.started("fix-login")
			test.then(w)
			req := w.resumeRequest("fix-login")
			req.Mode = agency.ModeProtocol
			_, err := w.sup.ResumeRun(t.Context(), req)
			if e := agency.AsError(err); !strings.HasPrefix(e.Message, test.says) || !strings.Contains(e.Hint, test.hint) {
				t.Errorf("got %+v", e)
			}
			if a := w.run(r.ID).Attempt; a.State != agency.Running || a.StopRequestedAt != nil {
				t.Errorf("got %+v", a)
			}
		})
	}
}

// An agent that is slow to say that it does not find its conversation has lost it all the same.
func TestModeOfASlowAgent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.harness.BuildFunc = func(r agency.CommandRequest, c *agency.Command) { c.ConversationID = r.ConversationID }
		w.ended("fix-login")
		w.tmux.OnStart = func(l agency.Launch) error {
			p := w.wrap(l)
			w.after(20*time.Second, func() {
				_ = p.end(agency.Exit{ExitCode: 143, EndedBy: agency.EndedByProtocol, ErrorCode: agency.CodeConversationLost, Error: "no such conversation"})
			})
			return p.begin()
		}
		req := w.resumeRequest("fix-login")
		req.Mode = agency.ModeProtocol
		_, err := w.sup.ResumeRun(t.Context(), req)
		wantCode(t, err, agency.CodeConversationLost)
	})
}

// An agent names its conversation, and a moment later waits for a message. The next request finds
// it at rest.
func TestModeOfAnAgentThatIsAtRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.harness.BuildFunc = func(r agency.CommandRequest, c *agency.Command) { c.ConversationID = r.ConversationID }
		r := w.ended("fix-login")
		w.tmux.OnStart = func(l agency.Launch) error {
			p := w.wrap(l)
			if err := p.begin(); err != nil {
				return err
			}
			for after, e := range map[time.Duration]agency.Evidence{
				time.Second:     {Source: agency.FromProtocol, Signal: agency.SignalSession, Conversation: r.Attempt.ConversationID},
				2 * time.Second: {Source: agency.FromProtocol, Signal: agency.SignalTurnEnded},
			} {
				w.after(after, func() {
					w.tell(p, e)
					w.sup.Observer.ReadEvidence(w.t.Context(), r.ID)
				})
			}
			return nil
		}
		req := w.resumeRequest("fix-login")
		req.Mode = agency.ModeProtocol
		got, err := w.sup.ResumeRun(t.Context(), req)
		if err != nil || got.Run.Attempt.AgentState.Turn != agency.TurnEnded {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}
