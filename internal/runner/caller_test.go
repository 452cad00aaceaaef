package runner_test

import (
	"os"
	"os/exec"
	"testing"

	"agency"
	"agency/internal/runner"
)

// A descendant of a wrapper belongs to its run, whatever it has dropped, unless it descends from a
// process that serves all runs.
func TestRunOfProcess(t *testing.T) {
	t.Parallel()
	self, err := runner.Identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	parent, err := runner.Identify(os.Getppid())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sleep", "600")
	cmd.Env = []string{} // neither token nor mark
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	run := func(w agency.Process) []runner.Live {
		return []runner.Live{{Run: "r_other", Attempt: 1}, {Run: "r_1", Attempt: 1, Wrappers: []agency.Process{w}}}
	}
	other := self
	other.StartTicks++
	for name, test := range map[string]struct {
		live []runner.Live
		want agency.RunID
	}{
		"below the wrapper":                {run(self), "r_1"},
		"a wrapper that had this pid":      {run(other), ""},
		"below a daemon below the wrapper": {run(parent), ""},
		"no runs":                          {nil, ""},
	} {
		if got, err := runner.RunOfProcess(cmd.Process.Pid, test.live, runner.Serving{}); got != test.want || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if got, err := runner.RunOfProcess(cmd.Process.Pid, run(self), runner.Serving{}); got != "" || err == nil {
		t.Errorf("one that has ended: %q, %v", got, err)
	}
}
