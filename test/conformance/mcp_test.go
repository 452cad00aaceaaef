package conformance_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agency"
	"agency/internal/api"
	"agency/test/conformance/modelserver"
)

// The real programs find the tools of agency mcp, and call them for their run.
func TestTools(t *testing.T) {
	t.Parallel()
	for _, runner := range runners() {
		configure := setups[agency.RunnerKind(runner)].tools
		if configure == nil {
			continue
		}
		t.Run(runner, func(t *testing.T) {
			t.Parallel()
			binary, a := installed(t, runner)
			scenario := modelserver.Scenario{
				{Text: "I look.", Call: &modelserver.Call{Tool: "run_list", Input: map[string]any{}}},
				{Call: &modelserver.Call{Tool: "messages_send", Input: map[string]any{"to_user": true, "text": "hello from a tool"}}},
				{Call: &modelserver.Call{Tool: "report_status", Input: map[string]any{
					"status": "ready_for_review", "summary": "Done by tools", "how_to_test": "agency ls",
				}}},
				{Text: "All done."},
			}
			wants := []string{"run_answer", "boss", "recipients", "Done by tools"}
			if a.searchesTools {
				scenario = append(modelserver.Scenario{{Search: "agency run list send message report status"}}, scenario...)
				wants = append([]string{"mcp__agency"}, wants...)
			}
			f := newFixture(t, binary, a, scenario)
			run := f.start(a, append([]string{"--headless", "--name", "boss", "--"}, configure(f)...)...)
			for turn, want := range wants {
				if !strings.Contains(f.body(turn), want) {
					t.Fatalf("request %d says nothing of %q", turn, want)
				}
			}
			run, _ = f.wait(run)
			if run.Status != agency.ReadyForReview || run.Summary != "Done by tools" {
				t.Errorf("got %s, %q", run.Status, run.Summary)
			}
			var inbox api.MessagesResponse
			f.agency(&inbox, "messages", "ls")
			if len(inbox.Messages) == 0 || inbox.Messages[0].From != string(run.ID) || !strings.Contains(string(inbox.Messages[0].Payload), "hello from a tool") {
				t.Errorf("got messages %+v, want one from %s", inbox.Messages, run.ID)
			}
		})
	}
}

// body returns the request of a turn as it arrived.
func (f *fixture) body(turn int) string {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), timeout)
	defer cancel()
	request, err := f.model.Await(ctx, func(r modelserver.Request) bool { return !r.Side && r.Subagent == "" && r.Turn == turn })
	if err != nil {
		f.t.Fatalf("turn %d: %v", turn, err)
	}
	return request.Body
}

// agency answers permissions and questions of the real programs through their dialogs, and the
// agent's next step shows that the answer was right.
func TestAnswer(t *testing.T) {
	t.Parallel()
	for _, runner := range runners() {
		for _, tt := range setups[agency.RunnerKind(runner)].answers {
			t.Run(runner+" "+tt.name, func(t *testing.T) {
				t.Parallel()
				binary, a := installed(t, runner)
				tt.run(t, binary, a)
			})
		}
	}
}

// run has the agent ask, answers, and checks what the agent did with the answer.
func (tt *answered) run(t *testing.T, binary string, a agent) {
	f := newFixture(t, binary, a, modelserver.Scenario{tt.ask, {Text: "All done."}})
	run := f.start(a, tt.args...)
	tl := f.watch(run)
	tl.await(agency.NeedsInput)
	var asked *agency.Request
	f.until("a request that says what it is for", func() bool {
		asked = f.show(run).Request
		return asked != nil && asked.ID != ""
	})
	prompt := asked.PromptID()
	f.until("an alert that says what it is for", func() bool { return slices.Equal(f.alerts(), []string{asked.Summary()}) })
	if _, err := f.command(binary, "answer", string(run.ID), tt.answer, "--prompt-id", "another@1"); err == nil {
		t.Error("an answer to another prompt was taken")
	}
	var answered api.AnswerRunResponse
	f.agency(&answered, "answer", string(run.ID), tt.answer, "--prompt-id", prompt)
	if !answered.Confirmed {
		t.Errorf("nothing was seen to happen:\n%s", f.output("tmux", "-S", f.tmuxSocket(), "capture-pane", "-p", "-t", "="+run.Session+":"))
	}
	tl.await(agency.Waiting)
	if tt.heard != "" && !strings.Contains(f.body(1), tt.heard) {
		t.Errorf("the next request does not hold %s:\n%s", tt.heard, f.body(1))
	}
	_, err := os.Stat(filepath.Join(run.Worktree, "made.txt"))
	if made := err == nil; made != (tt.made != "") {
		t.Errorf("made.txt: %t", made)
	}
	if _, err := f.command(binary, "answer", string(run.ID), "allow", "--prompt-id", prompt); err == nil {
		t.Error("a second answer was taken")
	}
}
