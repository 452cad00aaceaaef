package conformance_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"agency"
	"agency/internal/api"
	"agency/test/conformance/modelserver"
)

func init() {
	setups["claude_code"] = setup{
		home:  claudeHome,
		model: "haiku", other: "claude-haiku-5-5", permissions: "acceptEdits",
		tools: func(f *fixture) []string {
			config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"agency": map[string]any{"command": f.binary, "args": []string{"mcp"}}}})
			if err != nil {
				f.t.Fatal(err)
			}
			path := f.toolsFile()
			write(f.t, path, string(config))
			return []string{"--mcp-config", path, "--strict-mcp-config", "--allowedTools", "mcp__agency"}
		},
		todos: []modelserver.Turn{
			{Call: &modelserver.Call{Tool: "TaskCreate", Input: map[string]any{"subject": firstStep, "description": "All of it."}}},
			{Call: &modelserver.Call{Tool: "TaskCreate", Input: map[string]any{"subject": secondStep, "description": "The one that fails."}}},
			{Call: &modelserver.Call{Tool: "TaskUpdate", Input: map[string]any{"taskId": "1", "status": "completed"}}},
			{Call: &modelserver.Call{Tool: "TaskUpdate", Input: map[string]any{"taskId": "2", "status": "in_progress"}}},
		},
		todosDone: []modelserver.Turn{{Call: &modelserver.Call{Tool: "TaskUpdate", Input: map[string]any{"taskId": "2", "status": "completed"}}}},
		todoArgs:  []string{"--env", "CLAUDE_CODE_ENABLE_TASKS=1", "--env", "CLAUDE_CODE_ENABLE_TODO_TOOLS=1"}, // else on a terminal only
		answers: []answered{
			{name: "allow", ask: modelserver.Turn{Shell: "touch made.txt"}, answer: "allow", made: "made.txt"},
			{name: "allow write", ask: modelserver.Turn{Write: &modelserver.File{Path: "made.txt", Content: "x\n"}}, answer: "allow", made: "made.txt"},
			{name: "deny", ask: modelserver.Turn{Shell: "touch made.txt"}, answer: "deny"},
			{name: "option", ask: modelserver.Turn{Ask: "Which colour?"}, answer: "blue", heard: `=\"Blue\"`},
			{name: "own words", ask: modelserver.Turn{Ask: "Which colour?"}, answer: "a warm green", heard: "a warm green"},
			{name: "long own words", ask: modelserver.Turn{Ask: "Which colour?"}, answer: longWords, heard: longWords},
		},
	}
}

func claudeHome(t *testing.T, dir, repo, url string) []string {
	t.Helper()
	config, err := json.Marshal(map[string]any{
		"hasCompletedOnboarding": true,
		"theme":                  "dark",
		// Claude Code asks once about a key from the environment, and recognises it by its last 20
		// characters.
		"customApiKeyResponses": map[string]any{"approved": []string{key[len(key)-20:]}},
		"projects":              map[string]any{repo: map[string]any{"hasTrustDialogAccepted": true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "claude", ".claude.json"), string(config))
	return []string{
		"CLAUDE_CONFIG_DIR=" + filepath.Join(dir, "claude"),
		"ANTHROPIC_BASE_URL=" + url,
		"ANTHROPIC_API_KEY=" + key,
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
	}
}

const overloaded = 529

// The tests cover every state that Claude Code can get into.
func TestClaude(t *testing.T) {
	t.Parallel()
	testStates(t, "claude_code", map[string]state{
		"text":                   talks("", agency.FromHook),
		"tool":                   claudeTool,
		"permission given":       claudeLeave.given("1"),
		"permission denied":      claudePermissionDenied,
		"permission interrupted": claudePermissionInterrupted,
		"interrupted at work":    claudeInterrupted,
		"question":               asksQuestion("Enter to select"),
		"auth":                   fails(http.StatusUnauthorized, "", "(auth:", "CLAUDE_CODE_MAX_RETRIES=1"),
		"rate limit":             fails(http.StatusTooManyRequests, "", "(rate limit:", "CLAUDE_CODE_MAX_RETRIES=1"),
		"overload":               fails(overloaded, "", "(overloaded:", "CLAUDE_CODE_MAX_RETRIES=1"),
		"too long":               fails(http.StatusBadRequest, "prompt is too long: 250000 tokens > 200000 maximum", "(context:", "CLAUDE_CODE_MAX_RETRIES=1"),
		"tried again":            passes(http.StatusTooManyRequests, modelserver.Failure{Times: 2, RetryAfter: 2 * time.Second}, "trying again"),
		"headless failure":       claudeHeadlessFailure,
		"trust dialog":           claudeTrustDialog,
		"killed and resumed":     claudeKilled,
		"reports":                claudeReports,
		"own settings":           claudeOwnSettings,
		"a helper asks":          claudeSubagentAsks,
		"two helpers ask":        claudeSubagentsAsk,
		"asks twice":             claudeAsksTwice,
		"usage grows":            claudeUsageGrows,
	})
}

// claudeLeave has a dialog in which a digit selects at once.
var claudeLeave = leave{tool: "Bash", dialog: "Do you want to proceed?"}

// claudeTool tests a tool that needs no permission.
func claudeTool(t *testing.T, binary string, a agent) {
	f := newFixture(t, binary, a, modelserver.Scenario{{Text: "I look.", Read: agency.InstructionsFile}, {Text: "I have read it."}})
	_, tl := f.begin(a)
	tl.await(agency.Waiting)
	tl.check(agency.Working, agency.Waiting)
	f.asked(1) // with the tool's result
}

// claudeUsageGrows tests that an answer counts once, with its last figure: Claude Code writes a line
// for each part of an answer, each with the tokens so far.
func claudeUsageGrows(t *testing.T, binary string, a agent) {
	f := newFixture(t, binary, a, modelserver.Scenario{{Text: "I look.", Read: agency.InstructionsFile, Output: 159}, {Text: "I have read it.", Output: 40}})
	run, tl := f.begin(a)
	f.asked(1)
	tl.await(agency.Waiting)
	f.until("199 tokens of one model", func() bool {
		u := f.show(run).Usage
		return u.OutputTokens != nil && *u.OutputTokens == 199 && *u.InputTokens == 2 && len(u.Models) == 1 && u.Models[0].Output == 199
	})
}

func claudePermissionDenied(t *testing.T, binary string, a agent) {
	gate := make(chan struct{})
	f, run, tl := claudeLeave.asked(t, binary, a, gate)
	f.answer(run, tl, "4. No", "4")
	tl.awaitSummary(agency.Waiting, "(interrupted)")
	f.types(run, "then leave it")
	f.shown(run, "then leave it")
	f.press(run, "Enter")
	f.asked(1)
	tl.await(agency.Working)
	close(gate)
	tl.await(agency.Waiting)
	tl.check(agency.Working, agency.NeedsInput, agency.Waiting, agency.Working, agency.Waiting)
}

func claudePermissionInterrupted(t *testing.T, binary string, a agent) {
	f, run, tl := claudeLeave.asked(t, binary, a, nil)
	f.answer(run, tl, claudeLeave.dialog, "Escape")
	tl.awaitSummary(agency.Waiting, "(interrupted)")
	tl.check(agency.Working, agency.NeedsInput, agency.Waiting)
}

func claudeInterrupted(t *testing.T, binary string, a agent) {
	gate := make(chan struct{})
	defer close(gate)
	f := newFixture(t, binary, a, modelserver.Scenario{{Text: "Never said.", Gate: gate}})
	run, tl := f.begin(a)
	f.asked(0)
	f.answer(run, tl, "esc to interrupt", "Escape")
	tl.await(agency.Waiting)
	tl.check(agency.Working, agency.Waiting)
}

func claudeHeadlessFailure(t *testing.T, binary string, a agent) {
	f := newFixture(t, binary, a, modelserver.Scenario{{Text: "I look.", Shell: "ls"}, {Status: http.StatusTooManyRequests}})
	f.env = append(f.env, "CLAUDE_CODE_MAX_RETRIES=1")
	run := f.start(a, "--headless")
	tl := f.watch(run)
	tl.awaitSummary(agency.Working, "(rate limit")
	ended := tl.await(agency.LabelFailed)
	if ended.Usage.InputTokens == nil || ended.Usage.CostUSD == nil || ended.Conversation == "" {
		t.Errorf("got %+v", ended)
	}
}

// Until Claude Code trusts a folder it does nothing, and only its terminal shows that.
func claudeTrustDialog(t *testing.T, binary string, a agent) {
	untrusting := a
	untrusting.home = func(t *testing.T, dir, _, url string) []string {
		t.Helper()
		return a.home(t, dir, filepath.Join(dir, "elsewhere"), url)
	}
	gate := make(chan struct{})
	f := newFixture(t, binary, untrusting, modelserver.Scenario{{Text: "Good morning.", Gate: gate}})
	run := f.start(a)
	tl := f.watch(run)
	asks := tl.await(agency.NeedsInput)
	if r := asks.Request; r == nil || r.Kind != agency.AsksDialog || r.Confidence >= 1 || asks.Decided != agency.DecidedBy(agency.FromScreen) {
		t.Errorf("got %+v, decided by %s", r, asks.Decided)
	}
	if out, err := f.command(binary, "send", string(run.ID), "hello"); err == nil {
		t.Errorf("a message was sent into the dialog:\n%s", out)
	}
	const yes = "❯ Yes, I trust this folder"
	f.pressUntil(run, "❯ No, exit", "Down", func() bool { return strings.Contains(f.screen(run), yes) })
	f.answer(run, tl, yes, "Enter")
	f.asked(0)
	tl.await(agency.Working)
	close(gate)
	tl.await(agency.Waiting)
	tl.checkPassing(agency.Active, agency.NeedsInput, agency.Working, agency.Waiting)
}

// A killed agent has failed, whatever it asked, and continues the same conversation.
func claudeKilled(t *testing.T, binary string, a agent) {
	gate := make(chan struct{})
	f, run, tl := claudeLeave.asked(t, binary, a, gate)
	before := f.show(run)
	f.until("the call in the transcript", func() bool { // the agent writes it a moment after it asks
		return strings.Contains(f.evidence(run), `"source":"transcript","signal":"usage","event":"assistant `)
	})
	f.kill(run)
	tl.await(agency.LabelFailed)
	var resumed api.RunResponse
	f.agency(&resumed, "resume", string(run.ID))
	f.asked(2) // Claude Code adds a turn of its own after the interrupted one
	tl.await(agency.Working)
	close(gate)
	tl.await(agency.Waiting)
	f.checkContinued(before)
}

// kill kills the run's agent as the system does when it runs out of memory.
func (f *fixture) kill(run api.Run) {
	f.t.Helper()
	sessions, err := filepath.Glob(filepath.Join(f.dir, "claude", "sessions", "*.json"))
	if err != nil || len(sessions) != 1 {
		f.t.Fatalf("session files: %q, %v", sessions, err)
	}
	pid, err := strconv.Atoi(strings.TrimSuffix(filepath.Base(sessions[0]), ".json"))
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil {
		f.t.Fatalf("kill the agent of %s: %v", run.ID, err)
	}
}

// Claude Code reports its status without asking for a permission.
func claudeReports(t *testing.T, binary string, a agent) {
	f := newFixture(t, binary, a, modelserver.Scenario{
		{Shell: "agency report needs_input --summary Colours --question 'Which colour?'"}, {Text: "I asked."},
	})
	f.env = append(f.env, "PATH="+filepath.Dir(binary)+string(os.PathListSeparator)+os.Getenv("PATH"))
	_, tl := f.begin(a)
	tl.awaitSummary(agency.NeedsInput, "Which colour?")
	tl.check(agency.Working, agency.NeedsInput)
}

// The user's own settings stay in effect beside agency's additions.
func claudeOwnSettings(t *testing.T, binary string, a agent) {
	f := newFixture(t, binary, a, modelserver.Scenario{{Text: "Good morning."}})
	own := filepath.Join(f.dir, "own.json")
	write(t, own, `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"touch `+filepath.Join(f.dir, "stopped")+`"}]}]}}`)
	run := f.start(a, "--", "--settings", own)
	tl := f.watch(run)
	tl.await(agency.Waiting)
	// Claude Code runs the hooks of an event side by side.
	f.until("a run of the user's own hook", func() bool {
		_, err := os.Stat(filepath.Join(f.dir, "stopped"))
		return err == nil
	})
}
