// Package conformance_test runs the real coding agents, and one of them as a custom runner, under
// agency, against a scripted model on loopback.
package conformance_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agency"
	"agency/internal/api"
	described "agency/internal/harness/agent"
	"agency/test/conformance/modelserver"
)

func TestAgents(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("AGENCY_AGENTS")
	if dir == "" {
		t.Skip("make conformance runs this; it installs the agents with npm and sets AGENCY_AGENTS to their folder")
	}
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed: make deps")
	}
	binary := filepath.Join(bin, "agency")
	for _, a := range agents(t, dir) {
		t.Run(a.runner, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(a.program); err != nil {
				t.Skipf("%s is not installed: sh scripts/agents.sh %s", a.program, dir)
			}
			t.Run("headless", func(t *testing.T) {
				t.Parallel()
				testHeadless(t, binary, a)
			})
			t.Run("interactive", func(t *testing.T) {
				t.Parallel()
				testInteractive(t, binary, a)
			})
			t.Run("preset", func(t *testing.T) {
				t.Parallel()
				testPreset(t, binary, a)
			})
			t.Run("session killed", func(t *testing.T) {
				t.Parallel()
				testSessionKilled(t, binary, a)
			})
		})
	}
}

// A run with a preset gets its role, at the start and after a resume, and asks for no permission.
func testPreset(t *testing.T, binary string, a agent) {
	const role = "Thy role: speak as a watchman of the night."
	f := newFixture(t, binary, a, modelserver.Scenario{{Shell: "echo here > watchman.txt"}, {Text: "Twelve o'clock, and all is well."}, {Text: "One o'clock."}})
	skip := a.runner != "claude_code" || os.Getuid() != 0 // Claude Code refuses that for root
	f.addConfig(fmt.Sprintf("[presets.watchman]\nharness = %q\n[presets.watchman.config]\ndangerously_skip_permissions = %t\nsystem_prompt_file = \"role.md\"\n", a.runner, skip))
	write(t, filepath.Join(f.dir, "role.md"), role+"\n")
	run := f.start(a, "--headless", "--preset", "watchman")
	if run, exit := f.wait(run); run.State != agency.Completed || exit != 0 {
		t.Errorf("got %s, exit %d of wait", run.State, exit)
	}
	if _, err := os.Lstat(filepath.Join(run.Worktree, "watchman.txt")); skip && err != nil {
		t.Errorf("the command was not run: %v", err)
	}
	f.agency(nil, "resume", string(run.ID))
	f.wait(run)
	named := 0
	for _, r := range f.model.Requests() {
		if !r.Side && strings.Contains(r.Body, role) {
			named++
		}
	}
	if named < 3 {
		t.Errorf("%d requests of 3 have the role", named)
	}
	if shown := f.output(binary, "show", string(run.ID)); !strings.Contains(shown, "watchman") {
		t.Errorf("show does not name the preset:\n%s", shown)
	}
}

// A headless run reads its task, uses a tool and ends.
func testHeadless(t *testing.T, binary string, a agent) {
	const greeting, farewell = "good morning\n", "The greeting is written."
	scenario := modelserver.Scenario{
		{Text: "I write the file.", Write: &modelserver.File{Path: "greeting.txt", Content: greeting}},
		{Text: farewell},
	}
	if a.noInput {
		scenario = append(modelserver.Scenario{{Text: "I read the task.", Read: agency.PromptFile}}, scenario...)
	}
	f := newFixture(t, binary, a, scenario)
	run := f.start(a, "--headless")
	run, exit := f.wait(run)
	if run.State != agency.Completed || exit != 0 || run.ExitCode == nil || *run.ExitCode != 0 {
		t.Errorf("got %s, exit %d of wait and %v of the agent, want completed, 0 and 0", run.State, exit, run.ExitCode)
	}
	if got, err := os.ReadFile(filepath.Join(run.Worktree, "greeting.txt")); string(got) != greeting {
		t.Errorf("greeting.txt: got %q, %v, want %q", got, err, greeting)
	}
	heard := f.asked(0)
	if !strings.Contains(heard, described.Opening(agency.CommandRequest{})) {
		t.Errorf("the opening is not in the first request:\n%s", heard)
	}
	if a.noInput {
		heard = f.body(1)
	}
	if !strings.Contains(heard, task) {
		t.Errorf("the model does not know the task:\n%s", heard)
	}
	log := f.output(binary, "logs", string(run.ID))
	if !slices.ContainsFunc(strings.Split(log, "\n"), func(line string) bool {
		return json.Valid([]byte(line)) && strings.Contains(line, farewell)
	}) {
		t.Errorf("no JSON with the model's last words in the log:\n%s", log)
	}
	f.checkGone(run.ID)
}

// An interactive run asks a question in its status file, takes the answer as a message, offers its
// work, and is stopped.
func testInteractive(t *testing.T, binary string, a agent) {
	const question, answer = "Which greeting?", "say hello (in lower case)\nand nothing else"
	asks, offers := agency.NewContract(time.Now()), agency.NewContract(time.Now())
	asks.Status, asks.Summary, asks.Questions = agency.ReportedNeedsInput, question, []string{question}
	offers.Status, offers.Summary, offers.HowToTest = agency.ReportedReadyForReview, "Done", "cat greeting.txt"
	var f *fixture
	over := func(c agency.Contract) *modelserver.File {
		file := contractFile(t, c)
		file.Has = func() string { return f.status() }
		return file
	}
	f = newFixture(t, binary, a, modelserver.Scenario{
		{Text: "I read the instructions.", Read: agency.InstructionsFile},
		{Read: agency.ContractFile},
		{Write: over(asks)},
		{Text: question},
		{Write: over(offers)},
		{Text: "The work is done."},
	})
	run := f.start(a)
	if heard := f.asked(0); !strings.Contains(heard, described.Opening(agency.CommandRequest{})) {
		t.Errorf("the opening is not in the first request:\n%s", heard)
	}
	if r, exit := f.wait(run); r.Status != agency.NeedsInput || r.Summary != question || exit != agency.ExitNeedsUser {
		t.Fatalf("got %s, %q, exit %d of wait, want needs input, %q, %d", r.Status, r.Summary, exit, question, agency.ExitNeedsUser)
	}
	f.asked(3) // from here on only the next turn can bring the answer
	var sent api.SendInputResponse
	f.agency(&sent, "send", string(run.ID), answer)
	if !sent.Confirmed {
		t.Error("nothing was seen to happen after the message")
	}
	if heard := f.asked(4); !strings.Contains(heard, answer) {
		t.Errorf("the answer is not in the next request:\n%s", heard)
	}
	f.agency(nil, "wait", string(run.ID), "--for", "ready-for-review", "--timeout", timeout.String())
	f.checkAlive(run.ID)
	var stopped api.RunResponse
	f.agency(&stopped, "stop", string(run.ID))
	if stopped.Run.State != agency.Killed {
		t.Errorf("got %s, want killed", stopped.Run.State)
	}
	f.checkGone(run.ID)
}

func contractFile(t *testing.T, c agency.Contract) *modelserver.File {
	t.Helper()
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return &modelserver.File{Path: agency.ContractFile, Content: string(data) + "\n"}
}

// status returns the status file of the only run.
func (f *fixture) status() string {
	found, err := filepath.Glob(filepath.Join(f.dir, "data", "worktrees", "*", "*", agency.ContractFile))
	if err != nil || len(found) != 1 {
		return fmt.Sprintf("%d status files, %v", len(found), err)
	}
	data, err := os.ReadFile(found[0])
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// A run whose tmux session is killed in the middle of a turn has failed, and leaves no process.
func testSessionKilled(t *testing.T, binary string, a agent) {
	f := newFixture(t, binary, a, modelserver.Scenario{{Text: "Never said.", Gate: make(chan struct{})}})
	run := f.start(a)
	f.asked(0)
	f.checkAlive(run.ID)
	f.output("tmux", "-S", f.tmuxSocket(), "kill-session", "-t", "="+run.Session)
	// An agent that loses its terminal can report on the way out that its turn is over.
	run, exit := f.wait(run, "--for", "failed")
	if run.State != agency.Failed || run.ErrorCode != agency.CodeRunnerDisappeared || exit != agency.ExitOK {
		t.Errorf("got %s, %s, exit %d of wait, want failed, %s, 0", run.State, run.ErrorCode, exit, agency.CodeRunnerDisappeared)
	}
	f.checkGone(run.ID)
}
