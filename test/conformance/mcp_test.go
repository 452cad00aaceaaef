package conformance_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agency"
	"agency/internal/api"
	"agency/test/conformance/modelserver"
)

// The real programs find the tools of agency mcp, and call them in the name of their run.
func TestTools(t *testing.T) {
	t.Parallel()
	for runner, configure := range map[string]func(f *fixture) []string{
		"claude_code": func(f *fixture) []string {
			config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"agency": map[string]any{"command": f.binary, "args": []string{"mcp"}}}})
			if err != nil {
				f.t.Fatal(err)
			}
			path := filepath.Join(f.dir, "mcp.json")
			write(f.t, path, string(config))
			return []string{"--mcp-config", path, "--strict-mcp-config", "--allowedTools", "mcp__agency"}
		},
		"codex": func(f *fixture) []string {
			return []string{
				"-c", fmt.Sprintf("mcp_servers.agency.command=%q", f.binary), "-c", `mcp_servers.agency.args=["mcp"]`,
				"-c", `mcp_servers.agency.env_vars=["AGENCY_HOME","AGENCY_CONFIG","AGENCY_RUN_ID","AGENCY_ATTEMPT","AGENCY_TOKEN","AGENCY_WORKTREE"]`,
			}
		},
	} {
		t.Run(runner, func(t *testing.T) {
			t.Parallel()
			binary, a := installed(t, runner)
			scenario := modelserver.Scenario{
				{Text: "I look.", Call: &modelserver.Call{Tool: "run_list", Input: map[string]any{}}},
				{Call: &modelserver.Call{Tool: "send_message", Input: map[string]any{"to_person": true, "text": "hello from a tool"}}},
				{Call: &modelserver.Call{Tool: "report_status", Input: map[string]any{
					"status": "ready_for_review", "summary": "Done by tools", "how_to_test": "agency ls",
				}}},
				{Text: "All done."},
			}
			wants := []string{"run_answer", "boss", "recipients", "Done by tools"}
			if runner == "codex" { // it has models search for the tools of servers
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

// body is the request of a turn as it came.
func (f *fixture) body(turn int) string {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	request, err := f.model.Await(ctx, func(r modelserver.Request) bool { return !r.Side && r.Helper == "" && r.Turn == turn })
	if err != nil {
		f.t.Fatalf("turn %d: %v", turn, err)
	}
	return request.Body
}

// Permissions and questions of the real programs are answered through their dialogs, and what the agent then does shows that
// the answer was the right one.
func TestAnswer(t *testing.T) {
	t.Parallel()
	codexAsks := []string{"--", "-c", "approval_policy=on-request", "-s", "workspace-write"}
	geminiAsks := []string{"--", "--approval-mode", "default"}
	codexQuestions := []string{"--", "-c", "features.default_mode_request_user_input=true"}
	tests := []struct {
		name, runner string
		args         []string
		ask          modelserver.Turn
		answer       string
		made         string // a file that the agent then made
		heard        string // in the next request; empty when nothing is
	}{
		{"allow", "claude_code", nil, modelserver.Turn{Shell: "touch made.txt"}, "allow", "made.txt", ""},
		{"allow write", "claude_code", nil, modelserver.Turn{Write: &modelserver.File{Path: "made.txt", Content: "x\n"}}, "allow", "made.txt", ""},
		{"deny", "claude_code", nil, modelserver.Turn{Shell: "touch made.txt"}, "deny", "", ""},
		{"option", "claude_code", nil, modelserver.Turn{Ask: "Which colour?"}, "blue", "", `=\"Blue\"`},
		{"own words", "claude_code", nil, modelserver.Turn{Ask: "Which colour?"}, "a warm green", "", "a warm green"},
		{"allow", "codex", codexAsks, modelserver.Turn{Shell: "touch made.txt", Leave: true}, "allow", "made.txt", ""},
		{"deny", "codex", codexAsks, modelserver.Turn{Shell: "touch made.txt", Leave: true}, "deny", "", ""},
		{"option", "codex", codexQuestions, modelserver.Turn{Ask: "Which colour?"}, "blue", "", `[\"Blue\"]`},
		{"allow", "gemini", nil, modelserver.Turn{Shell: "touch made.txt"}, "allow", "made.txt", ""},
		{"allow write", "gemini", geminiAsks, modelserver.Turn{Write: &modelserver.File{Path: "made.txt", Content: "x\n"}}, "allow", "made.txt", ""},
		{"deny", "gemini", nil, modelserver.Turn{Shell: "touch made.txt"}, "deny", "", ""},
		{"option", "gemini", nil, modelserver.Turn{Ask: "Which colour?"}, "blue", "", `:\"Blue\"}}`},
		{"own words", "gemini", nil, modelserver.Turn{Ask: "Which colour?"}, "a warm green", "", "a warm green"},
		{"allow", "opencode", nil, modelserver.Turn{Shell: "touch made.txt"}, "allow", "made.txt", ""},
		{"deny", "opencode", nil, modelserver.Turn{Shell: "touch made.txt"}, "deny", "", ""},
		{"option", "opencode", nil, modelserver.Turn{Ask: "Which colour?"}, "blue", "", `=\"Blue\"`},
		{"own words", "opencode", nil, modelserver.Turn{Ask: "Which colour?"}, "a warm green", "", "a warm green"},
		{"allow", "copilot", nil, modelserver.Turn{Shell: "touch made.txt"}, "allow", "made.txt", ""},
		{"allow write", "copilot", nil, modelserver.Turn{Write: &modelserver.File{Path: "made.txt", Content: "x\n"}}, "allow", "made.txt", ""},
		{"deny", "copilot", nil, modelserver.Turn{Shell: "touch made.txt"}, "deny", "", ""},
		{"option", "copilot", nil, modelserver.Turn{Ask: "Which colour?"}, "blue", "", "User responded: Blue"},
		{"own words", "copilot", nil, modelserver.Turn{Ask: "Which colour?"}, "a warm green", "", "User responded: a warm green"},
	}
	for _, tt := range tests {
		t.Run(tt.runner+" "+tt.name, func(t *testing.T) {
			t.Parallel()
			binary, a := installed(t, tt.runner)
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
		})
	}
}
