package conformance_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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
	setups["opencode"] = setup{
		todos: []modelserver.Turn{{Call: &modelserver.Call{Tool: "todowrite", Input: map[string]any{"todos": []map[string]any{
			{"content": firstStep, "status": "completed", "priority": "high"}, {"content": secondStep, "status": "in_progress", "priority": "high"},
		}}}}},
		home:  opencodeHome,
		model: "scripted/other", other: "scripted/other", permissions: "plan",
		answers: []answered{
			{name: "allow", ask: modelserver.Turn{Shell: "touch made.txt"}, answer: "allow", made: "made.txt"},
			{name: "deny", ask: modelserver.Turn{Shell: "touch made.txt"}, answer: "deny"},
			{name: "option", ask: modelserver.Turn{Ask: "Which colour?"}, answer: "blue", heard: `=\"Blue\"`},
			{name: "own words", ask: modelserver.Turn{Ask: "Which colour?"}, answer: "a warm green", heard: "a warm green"},
		},
	}
}

func opencodeHome(t *testing.T, dir, _, url string) []string {
	t.Helper()
	// Only this file describes the model, so OpenCode does not ask the network.
	model := map[string]any{"name": "Model", "tool_call": true, "attachment": true, "modalities": map[string]any{"input": []string{"text", "image"}, "output": []string{"text"}}, "limit": map[string]any{"context": 100000, "output": 8000}}
	config, err := json.Marshal(map[string]any{
		"share": "disabled", "model": "scripted/model", "small_model": "scripted/model", "enabled_providers": []string{"scripted"},
		"permission": map[string]any{"bash": "ask"},
		"provider": map[string]any{"scripted": map[string]any{
			"npm": "@ai-sdk/openai-compatible", "name": "Scripted", "options": map[string]any{"baseURL": url + "/v1", "apiKey": key},
			"models": map[string]any{"model": model, "other": model},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	path, home := filepath.Join(dir, "opencode.json"), filepath.Join(dir, "home")
	write(t, path, string(config))
	return []string{
		"OPENCODE_CONFIG=" + path, "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1",
		"XDG_CONFIG_HOME=" + filepath.Join(home, ".config"), "XDG_DATA_HOME=" + filepath.Join(home, ".local/share"),
		"XDG_STATE_HOME=" + filepath.Join(home, ".local/state"), "XDG_CACHE_HOME=" + filepath.Join(home, ".cache"),
	}
}

// OpenCode shows what it does in every state that it can get into.
func TestOpenCode(t *testing.T) {
	t.Parallel()
	testStates(t, "opencode", map[string]state{
		"text":                   talks("scripted/model", agency.FromHook),
		"tool":                   writes,
		"permission given":       opencodeLeave.given("Enter"),
		"permission denied":      opencodePermissionDenied,
		"permission interrupted": opencodePermissionInterrupted,
		"interrupted at work":    opencodeInterrupted,
		"question":               asksQuestion("enter submit"),
		"auth":                   fails(http.StatusUnauthorized, "", "(auth:"),
		"request":                fails(http.StatusBadRequest, "no such thing", "(invalid request:"),
		"rate limit":             fails(http.StatusTooManyRequests, "rate limit", "(rate limit:"),
		"overload":               fails(overloaded, "overloaded", "(overloaded:"),
		"rate limit passes":      passes(http.StatusTooManyRequests, modelserver.Failure{Message: "rate limit", Times: 1, RetryAfter: 3 * time.Second}, "(rate limit"),
		"overload passes":        passes(overloaded, modelserver.Failure{Message: "overloaded", Times: 1, RetryAfter: 3 * time.Second}, "(overloaded"),
		"cut off":                opencodeCutOff,
		"cut off for ever":       opencodeCutOffForEver,
		"killed and resumed":     opencodeKilled,
		"own settings":           opencodeOwnSettings,
	})
}

var opencodeLeave = leave{tool: "bash", dialog: "Allow once"}

func opencodePermissionDenied(t *testing.T, binary string, a agent) {
	f, run, tl := opencodeLeave.asked(t, binary, a, nil)
	f.pressUntil(run, opencodeLeave.dialog, "Right", func() bool { return opencodeCursor(f.screen(run, "-e")) == 1 })
	f.pressUntil(run, opencodeLeave.dialog, "Right", func() bool { return opencodeCursor(f.screen(run, "-e")) == 2 })
	f.answer(run, tl, opencodeLeave.dialog, "Enter") // on the last choice, which rejects
	tl.await(agency.Waiting)
	// The model is not called after that, so nothing holds OpenCode at work.
	tl.checkPassing(agency.Working, agency.Working, agency.NeedsInput, agency.Waiting)
	if _, err := os.Stat(filepath.Join(run.Worktree, "made")); err == nil {
		t.Error("the command ran without leave")
	}
}

// opencodeCursor returns the choice of a permission on which the cursor is, recognised by its
// colour alone, or -1.
func opencodeCursor(screen string) int {
	colours := regexp.MustCompile(`(\S*)Allow once.*?(\S*)Allow always.*?(\S*)Reject`).FindStringSubmatch(screen)
	if colours == nil {
		return -1
	}
	switch once, always, reject := colours[1], colours[2], colours[3]; {
	case always == reject && once != always:
		return 0
	case once == reject && always != once:
		return 1
	case once == always && reject != once:
		return 2
	default:
		return -1
	}
}

func opencodePermissionInterrupted(t *testing.T, binary string, a agent) {
	f, run, tl := opencodeLeave.asked(t, binary, a, nil)
	f.answer(run, tl, opencodeLeave.dialog, "Escape")
	tl.await(agency.Waiting)
	if _, err := os.Stat(filepath.Join(run.Worktree, "made")); err == nil {
		t.Error("the command ran without leave")
	}
}

func opencodeInterrupted(t *testing.T, binary string, a agent) {
	gate := make(chan struct{})
	defer close(gate)
	f := newFixture(t, binary, a, modelserver.Scenario{{Text: "Never said.", Gate: gate}})
	run, tl := f.begin(a)
	f.asked(0)
	f.pressUntil(run, "esc interrupt", "Escape", func() bool { return strings.Contains(f.screen(run), "again to interrupt") })
	f.press(run, "Escape")
	tl.awaitSummary(agency.Waiting, "(interrupted)")
	tl.check(agency.Working, agency.Waiting)
}

// opencodeCutOff tests a model whose answers end early, which OpenCode requests again at once.
func opencodeCutOff(t *testing.T, binary string, a agent) {
	f := newFixture(t, binary, a, slices.Repeat(modelserver.Scenario{{Text: "Half an", Cut: true}}, 20))
	_, tl := f.begin(a)
	tl.awaitSummary(agency.Working, "(network: the model's answer")
	tl.await(agency.Waiting)
	tl.check(agency.Working, agency.Waiting)
}

// opencodeCutOffForEver tests that answers that always end early make one alert, after the time of
// an inactivity, while OpenCode repeats its requests.
func opencodeCutOffForEver(t *testing.T, binary string, a agent) {
	f := newFixture(t, binary, a, slices.Repeat(modelserver.Scenario{{Text: "Half an", Cut: true}}, 10_000))
	f.addConfig("[watchdog]\npoll_interval_secs = 5\nstuck_threshold_intervals = 1\nstall_threshold = \"5s\"\n")
	run := f.start(a)
	f.asked(0)
	f.until("an alert that says why", func() bool {
		out := f.output(binary, "alerts", "--json")
		return strings.Contains(out, "worker.stuck") && strings.Contains(out, "ended early")
	})
	if out := f.output(binary, "explain", string(run.ID)); !strings.Contains(out, "trying again after an error: network: the model's answer") {
		t.Errorf("explain does not tell:\n%s", out)
	}
}

// A killed agent has failed, whatever it asked, and continues the same conversation. OpenCode takes
// no prompt when it opens a conversation again: it waits for a message.
func opencodeKilled(t *testing.T, binary string, a agent) {
	f, run, tl := opencodeLeave.asked(t, binary, a, nil)
	before := f.show(run)
	f.killAll(run, a.program)
	tl.await(agency.LabelFailed)
	var resumed api.RunResponse
	f.agency(&resumed, "resume", string(run.ID))
	f.shown(resumed.Run, "ctrl+p commands")
	if waits := tl.await(agency.Waiting); waits.Attempt != 2 {
		t.Errorf("attempt %d waits", waits.Attempt)
	}
	f.output(binary, "send", string(run.ID), "go on")
	tl.await(agency.Working)
	tl.await(agency.Waiting)
	f.checkContinued(before)
}

// killAll kills the processes of a run that execute a program, as the system does when it runs out
// of memory.
func (f *fixture) killAll(run api.Run, program string) {
	f.t.Helper()
	killed := 0
	for _, process := range f.processes(run.ID) {
		dir, argv, _ := strings.Cut(process, " ")
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || !strings.Contains(argv, program) || strings.Contains(argv, f.binary) {
			continue
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err == nil {
			killed++
		}
	}
	if killed == 0 {
		f.t.Fatalf("no process of %s runs %s: %q", run.ID, program, f.processes(run.ID))
	}
}

// The user's own configuration stays in effect beside agency's additions.
func opencodeOwnSettings(t *testing.T, binary string, a agent) {
	f := newFixture(t, binary, a, modelserver.Scenario{{Text: "Good morning."}})
	own := filepath.Join(f.dir, "own.js")
	write(t, own, `import { writeFileSync } from "node:fs"
export const Own = async () => { writeFileSync("`+filepath.Join(f.dir, "loaded")+`", ""); return {} }
`)
	write(t, filepath.Join(f.dir, "own.md"), "Be brief, as the owner says.")
	f.env = append(f.env, `OPENCODE_CONFIG_CONTENT={"plugin":["file://`+own+`"],"instructions":["`+filepath.Join(f.dir, "own.md")+`"]}`)
	run := f.start(a)
	tl := f.watch(run)
	tl.await(agency.Waiting)
	if _, err := os.Stat(filepath.Join(f.dir, "loaded")); err != nil {
		t.Error("the user's own plugin was not loaded")
	}
}
