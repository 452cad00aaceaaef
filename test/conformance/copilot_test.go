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
		home: copilotHome, noInput: true, links: true, permissions: "plan",
		answers: []answered{
			{name: "allow", ask: modelserver.Turn{Shell: "touch made.txt"}, answer: "allow", made: "made.txt"},
			{name: "allow write", ask: modelserver.Turn{Write: &modelserver.File{Path: "made.txt", Content: "x\n"}}, answer: "allow", made: "made.txt"},
			{name: "deny", ask: modelserver.Turn{Shell: "touch made.txt"}, answer: "deny"},
			{name: "option", ask: modelserver.Turn{Ask: "Which colour?"}, answer: "blue", heard: "User responded: Blue"},
			{name: "own words", ask: modelserver.Turn{Ask: "Which colour?"}, answer: "a warm green", heard: "User responded: a warm green"},
			{name: "long own words", ask: modelserver.Turn{Ask: "Which colour?"}, answer: longWords, heard: "User responded: " + longWords},
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

// The tests cover every state that Copilot can get into.
func TestCopilot(t *testing.T) {
	t.Parallel()
	testStates(t, "copilot", map[string]state{
		"text":                talks("scripted", agency.FromSession),
		"permission given":    leave{tool: "shell", dialog: "Do you want to run this command?"}.given("1"),
		"interrupted at work": copilotInterrupted,
		"auth":                fails(http.StatusUnauthorized, "invalid x-api-key", "(auth:"),
		"rate limit passes":   passes(http.StatusTooManyRequests, modelserver.Failure{Message: "slow down", Times: 1, RetryAfter: 3 * time.Second}, "rate limit"),
		"trust":               copilotTrust,
		"killed and resumed":  copilotKilled,
	})
}

// Escape, pressed twice, ends a turn.
func copilotInterrupted(t *testing.T, binary string, a agent) {
	f := newFixture(t, binary, a, modelserver.Scenario{{Text: "Never said.", Gate: make(chan struct{})}})
	run, tl := f.begin(a)
	var pressed time.Time
	f.until("an interruption", func() bool {
		if time.Since(pressed) >= again && strings.Contains(f.screen(run), "esc interrupt") {
			f.press(run, "Escape")
			time.Sleep(150 * time.Millisecond) // the delay matters: pressed at once, the two are another key
			f.press(run, "Escape")
			pressed = time.Now()
		}
		return f.show(run).Status == agency.Waiting
	})
	if got := tl.await(agency.Waiting); !strings.Contains(got.Summary, "interrupted") {
		t.Errorf("got %q", got.Summary)
	}
}

// Until Copilot trusts a folder it does nothing, and only its terminal shows that. The dialog is
// for the user.
func copilotTrust(t *testing.T, binary string, a agent) {
	untrusting := a
	untrusting.home = func(t *testing.T, dir, repo, url string) []string {
		t.Helper()
		return append(a.home(t, dir, repo, url), "COPILOT_HOME="+filepath.Join(dir, "untrusting"))
	}
	gate := make(chan struct{})
	f := newFixture(t, binary, untrusting, modelserver.Scenario{{Text: "Good morning.", Gate: gate}})
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
	tl.await(agency.Working)
	close(gate)
	tl.await(agency.Waiting)
	tl.checkPassing(agency.Active, agency.NeedsInput, agency.Working, agency.Waiting)
}

// A run that is killed in a turn continues its conversation.
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
