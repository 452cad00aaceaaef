package conformance_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agency"
	"agency/internal/api"
	"agency/test/conformance/modelserver"
)

// helping is a turn that starts a subagent in the background.
func helping(name string, scenario ...modelserver.Turn) modelserver.Turn {
	return modelserver.Turn{Subagent: &modelserver.Subagent{Prompt: "You are helper " + name + ".", Scenario: scenario}}
}

// One subagent asks for permission while another one ends. Claude Code reports that end to the
// agent as a prompt, while the dialog stays.
func claudeSubagentAsks(t *testing.T, binary string, a agent) {
	gate := make(chan struct{})
	f := newFixture(t, binary, a, modelserver.Scenario{
		helping("one", modelserver.Turn{Shell: "mkdir -p made"}, modelserver.Turn{Text: "It is made."}),
		helping("two", modelserver.Turn{Text: "Hello.", Gate: gate}),
		{Text: "Both are at work."},
		{Text: "Two has ended."},
		{Text: "One has ended."},
	})
	run := f.start(a)
	tl := f.watch(run)
	asked := tl.awaitSummary(agency.NeedsInput, "mkdir -p made").Request
	f.shown(run, claudeLeave.dialog)
	close(gate)
	f.shown(run, "Two has ended.")
	f.until("the end of the turn about the news", func() bool { return strings.Count(f.evidence(run), `"event":"Stop"`) == 2 })
	if now := f.show(run); now.Status != agency.NeedsInput || now.Request == nil || now.Request.ID != asked.ID {
		t.Errorf("got %s, %+v, want what one asks", now.Status, now.Request)
	}
	var alerts api.ListAlertsResponse
	f.until("an alert", func() bool { // it is opened a moment after the status shows
		f.agency(&alerts, "alerts", "--all")
		return len(alerts.Alerts) > 0
	})
	if len(alerts.Alerts) != 1 || alerts.Alerts[0].Kind != agency.AlertNeedsInput || alerts.Alerts[0].ResolvedAt != nil {
		t.Errorf("got %+v, want one open alert", alerts.Alerts)
	}
	if out, err := f.command(binary, "send", string(run.ID), "hello"); err == nil {
		t.Errorf("a message was sent into the dialog:\n%s", out)
	}
	if _, err := os.Lstat(filepath.Join(run.Worktree, "made")); err == nil {
		t.Error("the command ran without leave")
	}
	var answered api.AnswerRunResponse
	f.agency(&answered, "answer", string(run.ID), "allow", "--prompt-id", asked.PromptID())
	f.shown(run, "One has ended.")
	tl.await(agency.Waiting)
	tl.checkPassing(agency.Working, agency.Working, agency.NeedsInput, agency.Working, agency.Waiting)
	if _, err := os.Lstat(filepath.Join(run.Worktree, "made")); err != nil || !answered.Confirmed {
		t.Errorf("confirmed: %t, %v", answered.Confirmed, err)
	}
}

// Every alert of a turn with two permissions names the requested action.
func claudeAsksTwice(t *testing.T, binary string, a agent) {
	f := newFixture(t, binary, a, modelserver.Scenario{{Shell: "mkdir first"}, {Shell: "mkdir second"}, {Text: "All done."}})
	run := f.start(a)
	tl := f.watch(run)
	var want []string
	for _, command := range []string{"mkdir first", "mkdir second"} {
		asked := tl.awaitSummary(agency.NeedsInput, command).Request
		want = append(want, "may it use Bash? "+command)
		f.until("an alert about "+command, func() bool { return slices.Equal(f.alerts(), want) })
		f.agency(nil, "answer", string(run.ID), "allow", "--prompt-id", asked.PromptID())
	}
	tl.await(agency.Waiting)
	for line := range strings.Lines(f.output(binary, "events", "--run", string(run.ID))) {
		if strings.Contains(line, string(agency.AlertOpened)) && strings.Contains(line, "permission prompt") {
			t.Errorf("an alert was sent without its words: %s", line)
		}
	}
}

// alerts returns the subjects of the alerts so far.
func (f *fixture) alerts() []string {
	f.t.Helper()
	var list api.ListAlertsResponse
	f.agency(&list, "alerts", "--all")
	var texts []string
	for i := range list.Alerts {
		texts = append(texts, api.AlertText(list.Alerts[i].Payload))
	}
	return texts
}

// evidence returns the evidence of the run's first attempt.
func (f *fixture) evidence(run api.Run) string {
	f.t.Helper()
	events, err := os.ReadFile(filepath.Join(run.RunDir, "attempts", "1", agency.EventsFile))
	if err != nil {
		f.t.Fatal(err)
	}
	return string(events)
}

// Two subagents ask for different permissions. The terminal shows one dialog at a time, and the run
// waits for that one; both are listed. A hook of the user's delays the first dialog, so that the
// reports arrive in another order than the dialogs.
func claudeSubagentsAsk(t *testing.T, binary string, a agent) {
	f := newFixture(t, binary, a, modelserver.Scenario{
		helping("one", modelserver.Turn{Shell: "mkdir first"}, modelserver.Turn{Text: "It is made."}),
		helping("two", modelserver.Turn{Shell: "mkdir second"}, modelserver.Turn{Text: "It is made too."}),
		{Text: "Both are at work."},
		{Text: "One has ended."},
		{Text: "Both have ended."},
	})
	own := filepath.Join(f.dir, "own.json")
	write(t, own, `{"hooks":{"PermissionRequest":[{"hooks":[{"type":"command","command":"if grep -q first; then sleep 2; fi"}]}]}}`)
	run := f.start(a, "--", "--settings", own)
	tl := f.watch(run)
	tl.awaitSummary(agency.NeedsInput, "mkdir ")
	f.until("both requests", func() bool { return strings.Count(f.evidence(run), `"event":"PermissionRequest"`) == 2 })
	for open := 2; open > 0; open-- {
		var shown api.ShowRunResponse
		f.until("a terminal that shows what the run waits for", func() bool {
			f.agency(&shown, "show", string(run.ID))
			return len(shown.Requests) == open && f.asks(run, shown.Requests[0].Text)
		})
		if first := shown.Run.Request; first == nil || first.ID != shown.Requests[0].ID || first.Subagent == "" {
			t.Errorf("it waits for %+v, and first for %+v", first, shown.Requests[0])
		}
		if text := f.output(binary, "explain", string(run.ID)); strings.Count(text, "asks for a permission: may it use Bash? mkdir") != open {
			t.Errorf("%d are open, and explain lists:\n%s", open, text)
		}
		made := filepath.Join(run.Worktree, strings.TrimPrefix(shown.Run.Request.Text, "mkdir "))
		f.agency(nil, "answer", string(run.ID), "allow", "--prompt-id", shown.Run.Request.PromptID())
		f.until("the folder "+made, func() bool { _, err := os.Lstat(made); return err == nil })
	}
	tl.await(agency.Waiting)
}

// asks reports whether the run's terminal shows a dialog with a line of exactly this text.
func (f *fixture) asks(run api.Run, text string) bool {
	f.t.Helper()
	screen := f.screen(run)
	return strings.Contains(screen, claudeLeave.dialog) && strings.Contains(screen, "\n "+text+"\n")
}
