package conformance_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"agency"
	"agency/internal/api"
	"agency/test/conformance/modelserver"
)

func init() {
	setups["copilot"] = setup{
		home: copilotHome, noInput: true,
		answers: []answered{
			{name: "allow", ask: modelserver.Turn{Shell: "touch made.txt"}, answer: "allow", made: "made.txt"},
			{name: "allow write", ask: modelserver.Turn{Write: &modelserver.File{Path: "made.txt", Content: "x\n"}}, answer: "allow", made: "made.txt"},
			{name: "deny", ask: modelserver.Turn{Shell: "touch made.txt"}, answer: "deny"},
			{name: "option", ask: modelserver.Turn{Ask: "Which colour?"}, answer: "blue", heard: "User responded: Blue"},
			{name: "own words", ask: modelserver.Turn{Ask: "Which colour?"}, answer: "a warm green", heard: "User responded: a warm green"},
		},
	}
}

func copilotHome(t *testing.T, dir, _, url string) []string {
	t.Helper()
	config, err := json.Marshal(map[string]any{"trustedFolders": []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "home", ".copilot", "config.json"), string(config))
	return []string{
		"COPILOT_CACHE_HOME=" + filepath.Join(os.Getenv("AGENCY_AGENTS"), "copilot"), "COPILOT_OFFLINE=true",
		"COPILOT_PROVIDER_BASE_URL=" + url + "/v1", "COPILOT_PROVIDER_API_KEY=" + key, "COPILOT_MODEL=scripted",
	}
}

// Copilot shows what it does in every state that it can get into.
func TestCopilot(t *testing.T) {
	t.Parallel()
	binary, a := installed(t, "copilot")
	for name, test := range map[string]func(*testing.T, string, agent){
		"text":                copilotText,
		"permission given":    copilotPermission,
		"interrupted at work": copilotInterrupted,
		"auth":                copilotFails(http.StatusUnauthorized, "invalid x-api-key", "(auth:"),
		"rate limit passes":   copilotTriedAgain,
		"trust":               copilotTrust,
		"killed and resumed":  copilotKilled,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, binary, a)
		})
	}
}

func copilotText(t *testing.T, binary string, a agent) {
	gate := make(chan struct{})
	f := newFixture(t, binary, a, modelserver.Scenario{{Text: "Good morning."}, {Text: "Good evening.", Gate: gate}})
	run := f.start(a)
	tl := f.watch(run)
	tl.await(agency.Waiting)
	f.output(binary, "send", string(run.ID), "and now?")
	f.asked(1)
	tl.await(agency.Working)
	close(gate)
	got := tl.await(agency.Waiting)
	tl.check(agency.Working, agency.Waiting, agency.Working, agency.Waiting)
	if got.Conversation == "" || got.Model != "scripted" || got.Decided != agency.DecidedBy(agency.FromSession) {
		t.Errorf("got %+v", got)
	}
	f.until("2 tokens in and out", func() bool {
		u := f.show(run).Usage
		return u.InputTokens != nil && *u.InputTokens == 2 && u.OutputTokens != nil && *u.OutputTokens == 2
	})
}

// A permission that a person gives in the terminal is answered when the conversation's file tells so.
func copilotPermission(t *testing.T, binary string, a agent) {
	gate := make(chan struct{})
	f := newFixture(t, binary, a, modelserver.Scenario{{Text: "I run it.", Shell: "mkdir -p made"}, {Text: "It ran.", Gate: gate}})
	run := f.start(a)
	tl := f.watch(run)
	asks := tl.await(agency.NeedsInput)
	if r := asks.Request; r == nil || r.Kind != agency.AsksPermission || r.Tool != "shell" || r.Text != "mkdir -p made" {
		t.Errorf("request: got %+v", r)
	}
	f.answer(run, tl, "Do you want to run this command?", "1")
	tl.await(agency.Working)
	close(gate)
	tl.await(agency.Waiting)
	tl.check(agency.Working, agency.NeedsInput, agency.Working, agency.Waiting)
}

// Escape, pressed twice, ends a turn.
func copilotInterrupted(t *testing.T, binary string, a agent) {
	f := newFixture(t, binary, a, modelserver.Scenario{{Text: "Never said.", Gate: make(chan struct{})}})
	run := f.start(a)
	tl := f.watch(run)
	f.asked(0)
	tl.await(agency.Working)
	var pressed time.Time
	f.until("an interruption", func() bool {
		if time.Since(pressed) >= again && strings.Contains(f.screen(run), "esc interrupt") {
			f.press(run, "Escape")
			time.Sleep(150 * time.Millisecond) // the time is what counts: at once, the two are another key
			f.press(run, "Escape")
			pressed = time.Now()
		}
		return f.show(run).Status == agency.Waiting
	})
	if got := tl.await(agency.Waiting); !strings.Contains(got.Summary, "interrupted") {
		t.Errorf("got %q", got.Summary)
	}
}

// copilotFails is a test of a call of the model that fails for good.
func copilotFails(status int, message, say string) func(*testing.T, string, agent) {
	return func(t *testing.T, binary string, a agent) {
		f := newFixture(t, binary, a, modelserver.Scenario{{Status: status, Failure: modelserver.Failure{Message: message}}})
		run := f.start(a)
		tl := f.watch(run)
		tl.awaitSummary(agency.Waiting, say)
		tl.check(agency.Working, agency.Waiting)
	}
}

// copilotTriedAgain is told by its hook.
func copilotTriedAgain(t *testing.T, binary string, a agent) {
	f := newFixture(t, binary, a, modelserver.Scenario{{
		Text: "At last.", Status: http.StatusTooManyRequests, Failure: modelserver.Failure{Message: "slow down", Times: 1, RetryAfter: 3 * time.Second},
	}})
	run := f.start(a)
	tl := f.watch(run)
	tl.awaitSummary(agency.Working, "rate limit")
	tl.await(agency.Waiting)
	tl.check(agency.Working, agency.Waiting)
}

// Before Copilot trusts a folder it does nothing, and shows it on its terminal alone. The dialog is for a person.
func copilotTrust(t *testing.T, binary string, a agent) {
	untrusting := a
	untrusting.home = func(t *testing.T, dir, repo, url string) []string {
		t.Helper()
		return append(a.home(t, dir, repo, url), "COPILOT_HOME="+filepath.Join(dir, "untrusting"))
	}
	f := newFixture(t, binary, untrusting, modelserver.Scenario{{Text: "Good morning."}})
	run := f.start(a)
	tl := f.watch(run)
	asks := tl.await(agency.NeedsInput)
	if asks.Request == nil || asks.Request.Kind != agency.AsksDialog || !strings.Contains(asks.Summary, "trusted") {
		t.Errorf("got %+v", asks)
	}
	if out, err := f.command(binary, "answer", string(run.ID), "allow"); err == nil {
		t.Errorf("the dialog was answered: %s", out)
	}
	f.answer(run, tl, "Do you trust the files in this folder?", "1")
	tl.await(agency.Waiting)
	tl.checkPassing(agency.Active, agency.NeedsInput, agency.Working, agency.Waiting)
}

// A run that is killed in a turn goes on with its conversation.
func copilotKilled(t *testing.T, binary string, a agent) {
	gate := make(chan struct{})
	f := newFixture(t, binary, a, modelserver.Scenario{{Text: "Here I am again.", Gate: gate}})
	run := f.start(a)
	f.asked(0)
	f.until("a conversation", func() bool { return f.show(run).Status == agency.Working })
	f.signal(run, syscall.SIGKILL)
	if run, _ := f.wait(run, "--for", "failed"); run.State != agency.Failed {
		t.Errorf("got %s", run.State)
	}
	close(gate)
	before := f.show(run).Conversation
	var resumed api.RunResponse
	f.agency(&resumed, "resume", string(run.ID))
	tl := f.watch(resumed.Run)
	tl.await(agency.Waiting)
	if got := f.show(run); got.Conversation != before || before == "" {
		t.Errorf("conversation %q, then %q", before, got.Conversation)
	}
	if heard := f.heardLast(); strings.Count(heard, "Your task is in") != 2 {
		t.Errorf("it heard %q", heard)
	}
	f.agency(nil, "stop", string(run.ID))
	f.checkGone(run.ID)
}
