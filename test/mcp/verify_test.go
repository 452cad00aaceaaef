package mcp_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// An agent runs the checks on its own work, with as many calls as that takes, and cannot approve a
// change of them.
func TestVerify(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	gate := filepath.Join(f.Root, "gate")
	checks := fmt.Sprintf("[[check]]\nname = \"slow\"\nrun = [\"sh\", \"-c\", 'until test -e %s; do sleep 0.02; done']\n"+
		"[[check]]\nname = \"wrong\"\nrun = [\"sh\", \"-c\", \"echo the reason; exit 1\"]\n", gate)
	if err := os.WriteFile(filepath.Join(f.Repo, "agency.toml"), []byte(checks), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"add", "-A"}, {"commit", "-q", "-m", "checks"}} {
		if r := f.Command("", "git", args...); r.Exit != 0 {
			t.Fatal(r.Stderr)
		}
	}
	person := connect(t, f, f.Repo, nil, "--tools", "all")
	var created struct{ Run worker }
	person.must(&created, "run_create", object{"name": "fix", "prompt": "write a.txt good\ncommit work\nask Go on?\nwait-file .agency/end"})
	person.must(nil, "run_wait", object{"runs": []string{"fix"}})
	agent := connect(t, f, f.Repo, environOf(t, created.Run.ID), "--tools", "all")
	agent.refused("E_TRUST_REQUIRED", "run_verify", object{"run": "fix"})
	if r := f.Agency("trust"); r.Exit != 0 {
		t.Fatal(r.Stderr)
	}
	agent.refused("E_USAGE", "run_verify", object{"run": "fix", "approve": true})

	var got struct {
		TimedOut bool `json:"timed_out"`
		Passed   bool
		Checks   []struct{ Name, Verdict, Reason string }
		Run      struct{ Flag *struct{ Reason string } }
	}
	agent.must(&got, "run_verify", object{"run": "fix", "timeout_seconds": 1})
	if !got.TimedOut || len(got.Checks) > 0 {
		t.Errorf("got %+v", got)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	agent.must(&got, "run_verify", object{"run": "fix", "timeout_seconds": 1})
	for got.TimedOut {
		agent.must(&got, "run_verify", object{"run": "fix"})
	}
	if got.Passed || len(got.Checks) != 2 || got.Checks[0].Verdict != "pass" || got.Checks[1].Reason != "failed with exit 1" || got.Run.Flag == nil {
		t.Errorf("got %+v", got)
	}
	agent.reviews("fix")
}

// reviews reads the review of a run whose checks failed, and the log of one.
func (c *client) reviews(run string) {
	t := c.t
	t.Helper()
	var log struct{ Output string }
	var review struct {
		Target   string
		Checks   []struct{ Name, State string }
		Obstacle string
		Files    []struct{ Path string }
	}
	c.must(&review, "run_review", object{"run": run})
	if review.Target != "main" || len(review.Files) != 1 || review.Files[0].Path != "a.txt" || len(review.Checks) != 2 || review.Obstacle == "" {
		t.Errorf("got %+v", review)
	}
	c.must(&log, "check_log", object{"run": run, "check": "wrong"})
	if log.Output != "the reason\nagency: check failed with exit 1\n" {
		t.Errorf("the log is %q", log.Output)
	}
}
