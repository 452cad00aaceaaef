package conformance_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"agency"
	"agency/internal/api"
	"agency/test/conformance/modelserver"
)

func init() {
	asks := []string{"--", "--approval-mode", "default"}
	setups["gemini"] = setup{
		home:  geminiHome,
		model: "gemini-2.5-pro", other: "gemini-2.5-pro", permissions: "plan",
		answers: []answered{
			{name: "allow", ask: modelserver.Turn{Shell: "touch made.txt"}, answer: "allow", made: "made.txt"},
			{name: "allow write", args: asks, ask: modelserver.Turn{Write: &modelserver.File{Path: "made.txt", Content: "x\n"}}, answer: "allow", made: "made.txt"},
			{name: "deny", ask: modelserver.Turn{Shell: "touch made.txt"}, answer: "deny"},
			{name: "option", ask: modelserver.Turn{Ask: "Which colour?"}, answer: "blue", heard: `:\"Blue\"}}`},
			{name: "own words", ask: modelserver.Turn{Ask: "Which colour?"}, answer: "a warm green", heard: "a warm green"},
			{name: "long own words", ask: modelserver.Turn{Ask: "Which colour?"}, answer: longWords, heard: longWords},
		},
	}
}

func geminiHome(t *testing.T, dir, _, url string) []string {
	t.Helper()
	put := func(name string, content any) {
		data, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "home", ".gemini", name), string(data))
	}
	put("settings.json", map[string]any{
		"security": map[string]any{"auth": map[string]any{"selectedType": "gemini-api-key"}, "folderTrust": map[string]any{"enabled": true}},
		// Gemini writes files without a permission, and asks for one to run commands.
		"general": map[string]any{
			"enableAutoUpdate": false, "enableAutoUpdateNotification": false, "defaultApprovalMode": "auto_edit",
			"maxAttempts": 2,
		},
		"privacy": map[string]any{"usageStatisticsEnabled": false},
		"model":   map[string]any{"name": "gemini-2.5-flash"},
	})
	// Worktrees are beside the repository.
	put("trustedFolders.json", map[string]any{dir: "TRUST_FOLDER"})
	return []string{"GEMINI_API_KEY=" + key, "GOOGLE_GEMINI_BASE_URL=" + url}
}

// The tests cover the states that Gemini's title and conversation show.
func TestGemini(t *testing.T) {
	t.Parallel()
	testStates(t, "gemini", map[string]state{
		"text":                   geminiText,
		"tool":                   writes,
		"permission given":       geminiPermissionGiven,
		"permission denied":      geminiPermissionRefused("3"),
		"permission interrupted": geminiPermissionRefused("Escape"),
		"interrupted at work":    geminiInterrupted,
		"question":               geminiQuestion,
		"auth":                   fails(http.StatusUnauthorized, "", "(auth:"),
		"rate limit":             fails(http.StatusTooManyRequests, "Too many requests.", "(rate limit:"),
		"overload":               geminiOverload,
		"headless failure":       geminiHeadlessFailure,
		"trust dialog":           geminiTrustDialog,
		"killed and resumed":     geminiKilled,
	})
}

func geminiText(t *testing.T, binary string, a agent) {
	gate := make(chan struct{})
	f := newFixture(t, binary, a, modelserver.Scenario{{Text: "Good morning."}, {Text: "Good evening.", Gate: gate}})
	run, tl := f.begin(a)
	tl.await(agency.Waiting)
	// Gemini treats an Enter right after a text as a part of the text, and "?" as a key.
	f.types(run, "and now")
	f.answer(run, tl, "> and now", "Enter")
	f.asked(1)
	tl.await(agency.Working)
	close(gate)
	tl.await(agency.Waiting)
	tl.check(agency.Working, agency.Waiting, agency.Working, agency.Waiting)
	f.until("2 tokens in and out, and no cost", func() bool {
		r := f.show(run)
		u := r.Usage
		return r.Conversation != "" && r.Model == "gemini-2.5-flash" &&
			u.InputTokens != nil && *u.InputTokens == 2 && u.OutputTokens != nil && *u.OutputTokens == 2 && u.CostUSD == nil
	})
}

// geminiAsks starts a run that asks for the permission to run a command, and waits until its dialog
// shows.
func geminiAsks(t *testing.T, binary string, a agent) (*fixture, api.Run, *timeline) {
	t.Helper()
	f := newFixture(t, binary, a, modelserver.Scenario{{Text: "I run it.", Shell: "mkdir -p made"}, {Text: "It ran."}})
	run := f.start(a)
	tl := f.watch(run)
	if asks := tl.await(agency.NeedsInput); asks.Decided != agency.DecidedBy(agency.FromTitle) {
		t.Errorf("decided by %s", asks.Decided)
	}
	f.shown(run, "Allow execution of")
	f.until("a request that says what it is for", func() bool {
		r := f.show(run).Request
		return r != nil && r.Kind == agency.AsksPermission && r.Tool == "Shell" && r.Text == "mkdir -p made"
	})
	return f, run, tl
}

func geminiPermissionGiven(t *testing.T, binary string, a agent) {
	f, run, tl := geminiAsks(t, binary, a)
	f.answer(run, tl, "Allow execution of", "Enter")
	tl.await(agency.Waiting)
	if _, err := os.Stat(filepath.Join(run.Worktree, "made")); err != nil {
		t.Error(err)
	}
}

// geminiPermissionRefused returns a test of a key that refuses: the last choice has the same effect
// as Escape.
func geminiPermissionRefused(key string) func(*testing.T, string, agent) {
	return func(t *testing.T, binary string, a agent) {
		f, run, tl := geminiAsks(t, binary, a)
		f.answer(run, tl, "3. No, suggest changes (esc)", key)
		tl.awaitSummary(agency.Waiting, "(interrupted)")
		if _, err := os.Stat(filepath.Join(run.Worktree, "made")); err == nil {
			t.Error("the command ran without leave")
		}
	}
}

func geminiInterrupted(t *testing.T, binary string, a agent) {
	gate := make(chan struct{})
	defer close(gate)
	f := newFixture(t, binary, a, modelserver.Scenario{{Text: "Never said.", Gate: gate}})
	run, tl := f.begin(a)
	f.asked(0)
	f.answer(run, tl, "esc to cancel", "Escape")
	tl.awaitSummary(agency.Waiting, "(interrupted)")
	tl.check(agency.Working, agency.Waiting)
}

func geminiQuestion(t *testing.T, binary string, a agent) {
	f := newFixture(t, binary, a, modelserver.Scenario{{Ask: "Which colour is it to be?"}, {Text: "Thank you."}})
	run := f.start(a)
	tl := f.watch(run)
	tl.await(agency.NeedsInput)
	f.answer(run, tl, "Enter to select", "Enter")
	f.asked(1)
	tl.await(agency.Waiting)
}

// geminiOverload tests an overload that passes. Gemini reports nothing about it, and gives up only
// after minutes.
func geminiOverload(t *testing.T, binary string, a agent) {
	f := newFixture(t, binary, a, modelserver.Scenario{{Text: "At last.", Status: http.StatusServiceUnavailable, Failure: modelserver.Failure{Times: 1}}})
	_, tl := f.begin(a)
	tl.awaitSummary(agency.Waiting, "(its turn ended)")
	tl.check(agency.Working, agency.Waiting)
}

func geminiHeadlessFailure(t *testing.T, binary string, a agent) {
	f := newFixture(t, binary, a, modelserver.Scenario{{Status: http.StatusUnauthorized}})
	run := f.start(a, "--headless")
	tl := f.watch(run)
	if ended := tl.await(agency.LabelFailed); ended.Conversation == "" {
		t.Errorf("got %+v", ended)
	}
}

// Gemini works in an untrusted folder without the folder's own settings, and asks about trust at
// the same time.
func geminiTrustDialog(t *testing.T, binary string, a agent) {
	untrusting := a
	untrusting.home = func(t *testing.T, dir, _, url string) []string {
		t.Helper()
		env := a.home(t, dir, "", url)
		write(t, filepath.Join(dir, "home", ".gemini", "trustedFolders.json"), "{}")
		return env
	}
	f := newFixture(t, binary, untrusting, modelserver.Scenario{{Text: "Good morning."}})
	run := f.start(a)
	tl := f.watch(run)
	f.shown(run, "Do you trust the files in this folder?")
	tl.await(agency.NeedsInput)
}

// A killed agent has failed, whatever it asked, and continues the same conversation.
func geminiKilled(t *testing.T, binary string, a agent) {
	f := newFixture(t, binary, a, modelserver.Scenario{{Text: "Good morning."}, {Text: "Good evening."}})
	run := f.start(a)
	tl := f.watch(run)
	tl.await(agency.Waiting)
	before := f.show(run)
	f.killAll(run, a.program)
	tl.await(agency.LabelFailed)
	f.agency(nil, "resume", string(run.ID))
	f.asked(1)
	tl.await(agency.Waiting)
	f.checkContinued(before)
}
