package supervisor_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"agency"
	"agency/internal/supervisor"
)

// Keys go to the attempt that the client saw, as a terminal sends them, and never into a dialog or
// past an open request.
func TestPress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.harness.SightFunc = composing
		r, p := w.started("fix-login")
		press := func(change func(*supervisor.KeysRequest)) agency.Code {
			req := supervisor.KeysRequest{Ref: "fix-login", Attempt: r.Attempt.Number, Text: "go on", Keys: []string{"up", "enter", "ctrl-c"}}
			change(&req)
			_, err := w.sup.Input.Press(t.Context(), req)
			return codeOf(err)
		}
		w.tmux.show("> ")
		if code := press(func(*supervisor.KeysRequest) {}); code != "" || !slices.Equal(p.link.keys, []string{"go on\x1b[A\r\x03"}) {
			t.Fatalf("%s, typed %q", code, p.link.keys)
		}
		for name, want := range map[string]agency.Code{"another attempt": agency.CodeInvalidState, "a request that is closed": agency.CodeInvalidState, "a control character": agency.CodeUsage, "no such key": agency.CodeUsage, "a dialog": agency.CodeInputRefused} {
			code := press(func(req *supervisor.KeysRequest) {
				switch name {
				case "another attempt":
					req.Attempt++
				case "a request that is closed":
					req.PromptID = "permission:gone"
				case "a control character":
					req.Text = "a\x1bb"
				case "no such key":
					req.Keys = []string{"entre"}
				case "a dialog":
					w.tmux.show("? Run rm?")
				}
			})
			if code != want {
				t.Errorf("%s: %s, want %s", name, code, want)
			}
		}
		if len(p.link.keys) != 1 {
			t.Errorf("typed %q", p.link.keys)
		}
	})
}

// While the agent asks something, keys are refused unless they are for that, and a dialog takes none.
func TestPressWhileItAsks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.harness.SightFunc = composing
		r, p, request := askingLeave(t, w)
		for prompt, screen := range map[string]string{"": "> ", request.PromptID(): "? Run rm?"} {
			w.tmux.show(screen)
			_, err := w.sup.Input.Press(t.Context(), supervisor.KeysRequest{Ref: r.Handle, Attempt: r.Attempt.Number, PromptID: prompt, Keys: []string{"enter"}})
			if err == nil || len(p.link.keys) > 0 {
				t.Errorf("for %q: %v, typed %q", prompt, err, p.link.keys)
			}
		}
	})
}
