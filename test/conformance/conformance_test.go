// Package conformance_test runs the real Claude Code and Codex under agency, against a scripted model on loopback.
package conformance_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agency"
	"agency/internal/api"
	"agency/internal/harness"
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
	binary := filepath.Join(t.TempDir(), "agency")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "agency/cmd/agency").CombinedOutput(); err != nil {
		t.Fatalf("build agency: %v\n%s", err, out)
	}
	for _, a := range agents(dir) {
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
			t.Run("session killed", func(t *testing.T) {
				t.Parallel()
				testSessionKilled(t, binary, a)
			})
		})
	}
}

// A headless run reads its task, uses a tool and ends.
func testHeadless(t *testing.T, binary string, a agent) {
	const greeting, farewell = "good morning\n", "The greeting is written."
	f := newFixture(t, binary, a, modelserver.Scenario{
		{Text: "I write the file.", Write: &modelserver.File{Path: "greeting.txt", Content: greeting}},
		{Text: farewell},
	})
	run := f.start(a, "--headless")
	run, exit := f.wait(run)
	if run.State != agency.Completed || exit != 0 || run.ExitCode == nil || *run.ExitCode != 0 {
		t.Errorf("got %s, exit %d of wait and %v of the agent, want completed, 0 and 0", run.State, exit, run.ExitCode)
	}
	if got, err := os.ReadFile(filepath.Join(run.Worktree, "greeting.txt")); string(got) != greeting {
		t.Errorf("greeting.txt: got %q, %v, want %q", got, err, greeting)
	}
	heard := f.hears(harness.Opening).Heard
	if !strings.Contains(heard, task) {
		t.Errorf("the task is not in the first request:\n%s", heard)
	}
	log := f.output(binary, "logs", string(run.ID))
	for line := range strings.Lines(log) {
		if !strings.HasPrefix(line, `{"`) {
			t.Errorf("not a JSON stream: %q", line)
		}
	}
	if !strings.Contains(log, farewell) {
		t.Errorf("the model's last words are not in the log:\n%s", log)
	}
	f.checkNothingLeft(run.ID)
}

// An interactive run does a turn, takes a message, and is stopped.
func testInteractive(t *testing.T, binary string, a agent) {
	f := newFixture(t, binary, a, modelserver.Scenario{
		{Text: "What should the greeting be?"},
		{Text: "Thank you."},
	})
	run := f.start(a)
	if first := f.hears(harness.Opening); first.Turn != 0 {
		t.Errorf("the opening came in turn %d", first.Turn)
	}
	const message = "say hello (in lower case)\nand nothing else"
	var sent api.SendInputResponse
	f.agency(&sent, "send", string(run.ID), message)
	if !sent.Confirmed {
		t.Error("the message is not confirmed")
	}
	if second := f.hears("and nothing else"); second.Turn != 1 {
		t.Errorf("the message came in turn %d, want 1", second.Turn)
	}
	var stopped api.RunResponse
	f.agency(&stopped, "stop", string(run.ID))
	if stopped.Run.State != agency.Killed {
		t.Errorf("got %s, want killed", stopped.Run.State)
	}
	f.checkNothingLeft(run.ID)
}

// A run whose tmux session is killed in the middle of a turn has failed, and takes everything with it.
func testSessionKilled(t *testing.T, binary string, a agent) {
	f := newFixture(t, binary, a, modelserver.Scenario{{Text: "Never said.", Gate: make(chan struct{})}})
	run := f.start(a)
	f.hears(harness.Opening)
	f.output("tmux", "-S", f.tmuxSocket(), "kill-session", "-t", "="+run.Session)
	run, exit := f.wait(run)
	if run.State != agency.Failed || run.ErrorCode != agency.CodeRunnerDisappeared || exit != agency.ExitError {
		t.Errorf("got %s, %s, exit %d of wait, want failed, %s, 1", run.State, run.ErrorCode, exit, agency.CodeRunnerDisappeared)
	}
	f.checkNothingLeft(run.ID)
}
