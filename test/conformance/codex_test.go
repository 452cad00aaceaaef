package conformance_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"agency"
	"agency/internal/api"
	described "agency/internal/harness/agent"
	"agency/test/conformance/modelserver"
)

func init() {
	asks := []string{"--", "-c", "approval_policy=on-request", "-s", "workspace-write"}
	questions := []string{"--", "-c", "features.default_mode_request_user_input=true"}
	setups["codex"] = setup{
		home:  codexHome,
		model: "gpt-6-sol", other: "gpt-6-sol", permissions: "read-only/untrusted",
		asks:   []string{"--", "-c", `approval_policy="on-request"`, "-c", `sandbox_mode="read-only"`},
		speaks: append(slices.Clone(asks), "-c", "features.default_mode_request_user_input=true"),
		todos: []modelserver.Turn{{Call: &modelserver.Call{Tool: "update_plan", Input: map[string]any{"plan": []map[string]any{
			{"step": firstStep, "status": "completed"}, {"step": secondStep, "status": "in_progress"},
		}}}}},
		todoArgs:      []string{"--", "-c", "tools.update_plan.enabled=true"}, // else with some models only
		joins:         struct{ shows, allow string }{"Would you like to run the following command?", "y"},
		searchesTools: true,
		tools: func(f *fixture) []string {
			return []string{
				"-c", fmt.Sprintf("mcp_servers.agency.command=%q", f.binary), "-c", `mcp_servers.agency.args=["mcp"]`,
				"-c", `mcp_servers.agency.env_vars=["AGENCY_HOME","AGENCY_CONFIG","AGENCY_RUN_ID","AGENCY_ATTEMPT","AGENCY_TOKEN","AGENCY_WORKTREE","AGENCY_SOCKET","AGENCY_SANDBOX"]`,
				"-c", `mcp_servers.agency.default_tools_approval_mode="approve"`,
			}
		},
		answers: []answered{
			{name: "allow", args: asks, ask: modelserver.Turn{Shell: "touch made.txt", Leave: true}, answer: "allow", made: "made.txt"},
			{name: "deny", args: asks, ask: modelserver.Turn{Shell: "touch made.txt", Leave: true}, answer: "deny"},
			{name: "option", args: questions, ask: modelserver.Turn{Ask: "Which colour?"}, answer: "blue", heard: `[\"Blue\"]`},
		},
	}
}

func codexHome(t *testing.T, dir, repo, url string) []string {
	t.Helper()
	// The sandbox is off because not every kernel that runs tests supports it. The two tables at
	// the end prevent a dialog about newer models, which would take the first Enter.
	write(t, filepath.Join(dir, "codex", "config.toml"), fmt.Sprintf(`
model = "gpt-5.5"
model_provider = "scripted"
sandbox_mode = "danger-full-access"
approval_policy = "never"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.scripted]
name = "scripted"
base_url = "%s/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"

[projects."%s"]
trust_level = "trusted"

[notice.model_migrations]
"gpt-5.5" = "gpt-6-sol"

[tui.model_availability_nux]
"gpt-6.1-sol" = 1
`, url, repo))
	return []string{"CODEX_HOME=" + filepath.Join(dir, "codex"), "SCRIPTED_KEY=" + key}
}

// The labels of Codex over time, in its terminal and without one.
func TestCodexLabels(t *testing.T) {
	t.Parallel()
	waits := []agency.Label{agency.Working, agency.Waiting}
	testCodexLabels(t, []codexTurn{
		{
			name: "text", scenario: modelserver.Scenario{{Text: "All done."}},
			labels: waits, summary: "(its turn ended)",
		},
		{
			name: "tool", scenario: modelserver.Scenario{{Text: "I look.", Shell: "echo seen"}, {Text: "All done."}},
			labels: waits, summary: "(its turn ended)",
		},
		{
			name: "interrupted", scenario: modelserver.Scenario{{Text: "Never said.", Gate: make(chan struct{})}},
			act: func(f *fixture, tl *timeline, run api.Run) {
				f.asked(0)
				f.answer(run, tl, "esc to interrupt", "Escape")
			},
			labels: waits, summary: "(interrupted)",
		},
		{
			name: "headless", scenario: modelserver.Scenario{{Text: "I look.", Shell: "echo seen"}, {Text: "All done."}}, args: []string{"--headless"},
			labels: []agency.Label{agency.Working, agency.LabelCompleted},
		},
	})
}

// A request shows until the user answers it, and what follows it.
func TestCodexRequestLabels(t *testing.T) {
	t.Parallel()
	const asking = "approval_policy=on-request"
	asks := []agency.Label{agency.Working, agency.NeedsInput, agency.Working, agency.Waiting}
	allowed, answered := make(chan struct{}), make(chan struct{})
	testCodexLabels(t, []codexTurn{
		{
			name: "permission allowed", args: []string{"--", "-c", asking, "-s", "workspace-write"},
			scenario: modelserver.Scenario{{Shell: "echo allowed", Leave: true}, {Text: "All done.", Gate: allowed}},
			act: func(f *fixture, tl *timeline, run api.Run) {
				tl.await(agency.NeedsInput)
				f.checkRequest(run, agency.AsksPermission, "echo allowed")
				f.answer(run, tl, "Press enter to confirm", "y")
				f.asked(1)
				tl.await(agency.Working)
				close(allowed)
			},
			labels: asks, summary: "(its turn ended)",
		},
		{
			name: "permission denied", args: []string{"--", "-c", asking, "-s", "workspace-write"},
			scenario: modelserver.Scenario{{Shell: "echo denied", Leave: true}},
			act: func(f *fixture, tl *timeline, run api.Run) {
				tl.await(agency.NeedsInput)
				f.answer(run, tl, "Press enter to confirm", "Escape")
			},
			labels: []agency.Label{agency.Working, agency.NeedsInput, agency.Waiting}, summary: "(interrupted)",
			between: agency.Working, // its title is faster than its hook
		},
		{
			name: "question", args: []string{"--", "-c", "features.default_mode_request_user_input=true"},
			scenario: modelserver.Scenario{{Ask: "Which colour?"}, {Text: "All done.", Gate: answered}},
			act: func(f *fixture, tl *timeline, run api.Run) {
				tl.await(agency.NeedsInput)
				f.checkRequest(run, agency.AsksQuestion, "Which colour?")
				f.answer(run, tl, "enter to submit answer", "Enter")
				f.asked(1)
				tl.await(agency.Working)
				close(answered)
			},
			labels: asks, summary: "(its turn ended)",
		},
	})
}

// A turn that the provider refuses ends with its reason.
func TestCodexErrorLabels(t *testing.T) {
	t.Parallel()
	waits := []agency.Label{agency.Working, agency.Waiting}
	testCodexLabels(t, []codexTurn{
		{
			name: "auth", scenario: modelserver.Scenario{{Status: http.StatusUnauthorized}},
			labels: waits, summary: "(auth: ",
		},
		{
			name: "rate limit", scenario: modelserver.Scenario{{Status: http.StatusTooManyRequests}},
			labels: waits, summary: "(rate limit: ",
		},
		{
			name: "overload", scenario: modelserver.Scenario{{Status: overloaded}},
			labels: waits, summary: "(overloaded: ",
		},
		{
			name: "headless auth", scenario: modelserver.Scenario{{Status: http.StatusUnauthorized}}, args: []string{"--headless"},
			labels: []agency.Label{agency.Working, agency.LabelFailed},
		},
	})
}

// codexTurn is one turn of Codex, and what agency shows of it.
type codexTurn struct {
	name     string
	scenario modelserver.Scenario
	args     []string
	act      func(f *fixture, tl *timeline, run api.Run)
	labels   []agency.Label
	between  agency.Label // may show for a moment between two of them
	summary  string
}

// testCodexLabels checks what agency shows of each turn.
func testCodexLabels(t *testing.T, turns []codexTurn) {
	t.Helper()
	binary, codex := installed(t, "codex")
	for _, tt := range turns {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, binary, codex, tt.scenario)
			run, tl := f.begin(codex, tt.args...)
			if tt.act != nil {
				tt.act(f, tl, run)
			}
			got := tl.awaitSummary(tt.labels[len(tt.labels)-1], tt.summary)
			tl.checkPassing(tt.between, tt.labels...)
			if got.Conversation == "" {
				t.Error("no conversation is known")
			}
			f.checkUserConfig()
		})
	}
}

// checkRequest waits until the run's request is known: the terminal may show first that the agent
// asks.
func (f *fixture) checkRequest(run api.Run, kind agency.RequestKind, text string) {
	f.t.Helper()
	f.until(fmt.Sprintf("a request by a hook: %s with %q", kind, text), func() bool {
		r := f.show(run).Request
		return r != nil && r.Kind == kind && strings.Contains(r.Text, text) && r.Source == agency.FromHook
	})
}

// checkUserConfig checks that no file of the user's mentions agency.
func (f *fixture) checkUserConfig() {
	f.t.Helper()
	home := filepath.Join(f.dir, "codex")
	data, err := os.ReadFile(filepath.Join(home, "config.toml"))
	if err != nil || strings.Contains(string(data), "agency hook") || strings.Contains(string(data), "hooks") {
		f.t.Errorf("config.toml: %v\n%s", err, data)
	}
	if _, err := os.Stat(filepath.Join(home, "hooks.json")); err == nil {
		f.t.Error("there is a hooks.json")
	}
}

// Codex is killed in the middle of a turn, and the next attempt continues the same conversation.
func TestCodexKilledAndResumed(t *testing.T) {
	t.Parallel()
	binary, codex := installed(t, "codex")
	for _, flags := range [][]string{nil, {"--headless"}} {
		t.Run(fmt.Sprint(flags), func(t *testing.T) {
			t.Parallel()
			gate := make(chan struct{})
			f := newFixture(t, binary, codex, modelserver.Scenario{
				{Text: "I begin.", Shell: "echo begun"}, {Text: "All done.", Gate: gate},
			})
			run := f.start(codex, flags...)
			tl := f.watch(run)
			f.asked(1)
			pid := f.agentProcess(run, "vendor")
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			tl.await(agency.LabelFailed)
			was := f.show(run).Conversation
			f.checkGone(run.ID)
			close(gate)
			var resumed api.ResumeRunResponse
			f.agency(&resumed, "resume", string(run.ID))
			if !resumed.Continued {
				t.Errorf("the conversation was not continued: %s", resumed.Note)
			}
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			request, err := f.model.Await(ctx, func(r modelserver.Request) bool {
				return !r.Side && strings.Count(r.Heard, described.Opening(agency.CommandRequest{})) == 2
			})
			if err != nil || request.Turn == 0 {
				t.Fatalf("the model did not hear the earlier conversation: turn %d, %v", request.Turn, err)
			}
			ended := agency.Waiting
			if len(flags) > 0 {
				ended = agency.LabelCompleted
			}
			f.watch(resumed.Run).await(ended)
			if is := f.show(run).Conversation; was == "" || was != is {
				t.Errorf("the conversation was %q and is %q", was, is)
			}
		})
	}
}

// agentProcess returns the pid of the run's agent, whose program must be the native one.
func (f *fixture) agentProcess(run api.Run, part string) int {
	f.t.Helper()
	var shown api.ShowRunResponse
	f.agency(&shown, "show", string(run.ID))
	p := shown.Attempts[len(shown.Attempts)-1].RunnerProcess
	if p == nil {
		f.t.Fatal("the run has no process")
	}
	if program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.PID)); err == nil && !strings.Contains(program, part) {
		f.t.Errorf("the agent's program is %s", program)
	}
	return p.PID
}

// A folder that Codex does not trust stops it at a dialog, which only the screen shows.
func TestCodexAsksForTrust(t *testing.T) {
	t.Parallel()
	binary, codex := installed(t, "codex")
	trusting := codex.home
	codex.home = func(t *testing.T, dir, repo, url string) []string {
		return trusting(t, dir, repo+"-other", url)
	}
	f := newFixture(t, binary, codex, modelserver.Scenario{{Text: "All done."}})
	run := f.start(codex)
	tl := f.watch(run)
	if r := tl.await(agency.NeedsInput).Request; r == nil || r.Kind != agency.AsksDialog || r.Source != agency.FromScreen || r.Confidence >= 1 {
		t.Errorf("got request %+v", r)
	}
	if out, err := f.command(binary, "send", string(run.ID), "hello"); err == nil {
		t.Errorf("a message was sent into the dialog:\n%s", out)
	}
	f.answer(run, tl, "Trust this folder?", "Enter")
	tl.await(agency.Waiting)
}
