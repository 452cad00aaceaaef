package conformance_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agency"
	"agency/internal/api"
	"agency/test/conformance/modelserver"
)

// The real programs do a whole orchestration with the tools: they start a worker, wait for its
// question, answer it, look at its work, and clean up.
func TestOrchestrate(t *testing.T) {
	t.Parallel()
	worker := "ask Which colour?\nwrite made.txt blue\nready Painted | cat made.txt\nwait-file .agency/end"
	steps := []struct {
		search, tool string
		input        map[string]any
		answer       string // in the request that follows
	}{
		{"agency config list runners presets", "config_list", map[string]any{}, "installed"},
		{"agency run create start an agent on a task", "run_create", map[string]any{"name": "hand", "runner": "scripted", "prompt": worker}, "queued"},
		{"agency messages poll inbox", "messages_poll", map[string]any{"wait_seconds": 50}, "worker.needs_input"},
		{"agency run send type a message", "run_send", map[string]any{"run": "hand", "text": "blue"}, "delivered"},
		{"agency run wait until runs", "run_wait", map[string]any{"runs": []string{"hand"}, "for": []string{"ready for review"}, "timeout_seconds": 50}, "Painted"},
		{"agency run diff patch", "run_diff", map[string]any{"run": "hand"}, "+blue"},
		{"agency run stop end agent", "run_stop", map[string]any{"run": "hand"}, "ended_at"},
		{"agency run remove clean up", "run_remove", map[string]any{"run": "hand"}, "removed_at"},
		{"agency report status", "report_status", map[string]any{"status": "complete", "summary": "All is collected"}, "All is collected"},
	}
	for _, runner := range runners() {
		configure := setups[agency.RunnerKind(runner)].tools
		if configure == nil {
			continue
		}
		for name, flags := range map[string][]string{runner: nil, runner + " in a sandbox": {"--sandbox", "process"}} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				if _, err := exec.LookPath("bwrap"); err != nil && len(flags) > 0 {
					t.Skip("bubblewrap is not installed: make deps")
				}
				binary, a := installed(t, runner)
				scenario, answers := modelserver.Scenario{}, map[int]string{}
				for _, s := range steps {
					if s.tool == "config_list" && len(flags) > 0 {
						continue // a sandbox does not have the configuration
					}
					if a.searchesTools {
						scenario = append(scenario, modelserver.Turn{Search: s.search})
					}
					scenario = append(scenario, modelserver.Turn{Call: &modelserver.Call{Tool: s.tool, Input: s.input}})
					answers[len(scenario)] = s.answer
				}
				f := newFixture(t, binary, a, append(scenario, modelserver.Turn{Text: "All done."}))
				script, err := filepath.Abs("../agent/agent.sh")
				if err != nil {
					t.Fatal(err)
				}
				f.addConfig(fmt.Sprintf("[mcp]\nallow = [\"custom\"]\n\n[runners.custom.scripted]\nexec = %q\ndefault_args = [\"{prompt_file}\"]\n", script))
				// It needs the key of its model, and the file of its tools.
				f.addConfig(fmt.Sprintf("\n[sandbox]\nenv = [\"SCRIPTED_KEY\"]\nread = [%q]\n", f.toolsFile()))
				run := f.start(a, slices.Concat([]string{"--headless", "--name", "boss"}, flags, []string{"--"}, configure(f))...)
				for turn := range len(scenario) + 1 {
					if body := f.body(turn); !strings.Contains(body, answers[turn]) {
						t.Fatalf("request %d says nothing of %q:\n%s", turn, answers[turn], body[max(0, len(body)-3000):])
					}
				}
				if run, _ = f.wait(run); run.Summary != "All is collected" {
					t.Errorf("got %s, %q", run.Status, run.Summary)
				}
				f.removedOnly("hand", run.Sandbox)
			})
		}
	}
}

// removedOnly checks that of two runs, in the same sandbox, the named one was removed.
func (f *fixture) removedOnly(name string, in agency.SandboxLevel) {
	f.t.Helper()
	var left api.ListRunsResponse
	if f.agency(&left, "ls", "--all"); len(left.Runs) != 2 {
		f.t.Fatalf("got %+v", left.Runs)
	}
	for i := range left.Runs {
		r := &left.Runs[i]
		if (r.Name == name) != (r.RemovedAt != nil) {
			f.t.Errorf("%s was removed at %v", r.Name, r.RemovedAt)
		}
		if r.Sandbox != in {
			f.t.Errorf("%s was in the sandbox %s, not %s", r.Name, r.Sandbox, in)
		}
	}
}
