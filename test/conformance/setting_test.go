package conformance_test

import (
	"slices"
	"strings"
	"testing"

	"agency"
	"agency/internal/api"
	"agency/test/conformance/modelserver"
)

// A living agent uses another model and another permission mode, also when its wrapper is killed in
// between, and says so.
func TestProtocolSettings(t *testing.T) {
	t.Parallel()
	for _, runner := range slices.Concat(speaking(false), speaking(true)) {
		t.Run(runner, func(t *testing.T) {
			t.Parallel()
			testStates(t, runner, map[string]state{"settings": protocolSettings})
		})
	}
}

func protocolSettings(t *testing.T, binary string, a agent) {
	f, run, tl := speak(t, binary, a, modelserver.Turn{Text: "Good morning."}, modelserver.Turn{Text: "Here I am."})
	tl.await(agency.Waiting)
	f.rejects("E_", "mode", "permission-mode", string(run.ID), "nonsense")
	f.set(run, "permission-mode", a.permissions, a.permissions)
	f.killWrapper(run)
	if a.model != "" {
		f.set(run, "model", a.model, a.other)
		f.agency(nil, "send", string(run.ID), "go on")
		f.until("a call of the other model", func() bool { // which may begin with a summary of the conversation
			return slices.ContainsFunc(f.turns()[1:], func(r modelserver.Request) bool {
				return strings.Contains(r.Path+string(r.Body), strings.TrimPrefix(a.other, "scripted/"))
			})
		})
	}
	var shown api.ShowRunResponse
	f.agency(&shown, "show", string(run.ID))
	if s := shown.Settings; !strings.HasSuffix(s.PermissionMode, a.permissions) || !slices.Contains(s.PermissionModes, s.PermissionMode) || a.model != "" && (s.Model != a.other || len(s.Models) < 2) {
		t.Errorf("got %+v", s)
	}
}

// set changes a setting, and fails if the agent does not use it then.
func (f *fixture) set(run api.Run, setting, value, used string) {
	f.t.Helper()
	var set api.SetRunResponse
	f.agency(&set, setting, string(run.ID), value)
	if !set.Confirmed || !strings.HasSuffix(set.Value, used) {
		f.t.Errorf("%s %s: got %+v", setting, value, set)
	}
}

// A message with which Claude Code has not begun is listed, and taken back.
func TestProtocolTakeBack(t *testing.T) {
	t.Parallel()
	testStates(t, "claude_code", map[string]state{"taken back": protocolTakeBack})
}

func protocolTakeBack(t *testing.T, binary string, a agent) {
	f, run, tl := speak(t, binary, a, touch, modelserver.Turn{Text: "It is made."})
	tl.await(agency.NeedsInput)
	for _, text := range []string{"never heard", "and this is"} {
		f.agency(nil, "send", string(run.ID), text)
	}
	var shown api.ShowRunResponse
	f.until("two messages", func() bool {
		f.agency(&shown, "show", string(run.ID))
		return len(shown.Queue) == 2
	})
	f.rejects(agency.CodeUsage, "2 messages", "unsend", string(run.ID))
	f.killWrapper(run)
	var back api.UnsendResponse
	f.agency(&back, "unsend", string(run.ID), shown.Queue[0].ID)
	if !back.Confirmed || back.Message != shown.Queue[0] {
		t.Errorf("got %+v", back)
	}
	f.rejects(agency.CodeInvalidState, "has no message", "unsend", string(run.ID), shown.Queue[0].ID)
	f.answers(run, "allow")
	tl.await(agency.Waiting)
	f.asked(1)
	if heard := f.body(1); strings.Contains(heard, "never heard") || !strings.Contains(heard, "and this is") {
		t.Errorf("the model heard\n%s", heard)
	}
}
