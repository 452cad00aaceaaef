package supervisor_test

import (
	"testing"
	"testing/synctest"

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
