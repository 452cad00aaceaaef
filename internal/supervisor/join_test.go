package supervisor_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"agency"
)

// The agent's own terminal joins a run in the mode protocol, where the agent has one that can.
func TestJoin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, _, _ := speaking(t, w)
		got, door, err := w.sup.Input.Join(t.Context(), r.Handle)
		if err != nil || got.ID != r.ID || door.Socket != "/door" || door.Conversation != "c1" {
			t.Errorf("got %+v, %v", door, err)
		}
		w.harness.JoinsErr = agency.Errorf(agency.CodeInvalidState, "the terminal of gemini cannot join")
		_, _, err = w.sup.Input.Join(t.Context(), r.Handle)
		if e := agency.AsError(err); e.Code != agency.CodeInvalidState || !strings.Contains(e.Hint, "agency mode "+r.Ref()+" terminal") {
			t.Errorf("got %v, hint %q", e, e.Hint)
		}
		w.sup.Stop()
	})
}

// In the other modes the agent takes no further client.
func TestJoinOtherModes(t *testing.T) {
	t.Parallel()
	for mode, hint := range map[agency.Mode]string{agency.ModeTerminal: "agency attach ", agency.ModeHeadless: "agency mode "} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.tmux.OnStart = func(l agency.Launch) error { return w.wrap(l).begin() }
				req := w.request("fix-login")
				req.Spec.Mode = mode
				r, err := w.createRun(t.Context(), req)
				if err != nil {
					t.Fatal(err)
				}
				_, _, err = w.sup.Input.Join(t.Context(), r.Handle)
				if e := agency.AsError(err); e.Code != agency.CodeInvalidState || !strings.HasPrefix(e.Hint, hint) {
					t.Errorf("got %v, hint %q", e, e.Hint)
				}
				w.sup.Stop()
			})
		})
	}
}
