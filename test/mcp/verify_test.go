package mcp_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
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

// A verdict is about the work as it is at the call, not as it was when an earlier call ran out of
// time: both when the checks of the old work have ended by then, and when they still run.
func TestVerifyNewWork(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	gate := filepath.Join(f.Root, "gate")
	check := fmt.Sprintf("[[check]]\nname = \"good\"\nrun = [\"sh\", \"-c\", 'until test -e %s; do sleep 0.02; done; grep good a.txt']\n", gate)
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	commit := func(dir string) {
		t.Helper()
		for _, args := range [][]string{{"-C", dir, "add", "-A"}, {"-C", dir, "commit", "-q", "-m", "work"}} {
			if r := f.Command("", "git", args...); r.Exit != 0 {
				t.Fatal(r.Stderr)
			}
		}
	}
	write(filepath.Join(f.Repo, "agency.toml"), check)
	commit(f.Repo)
	if r := f.Agency("trust"); r.Exit != 0 {
		t.Fatal(r.Stderr)
	}
	c := connect(t, f, f.Repo, nil, "--tools", "all")
	c.must(nil, "run_create", object{"name": "fix", "prompt": "write a.txt good\ncommit work\nask Go on?"})
	c.must(nil, "run_wait", object{"runs": []string{"fix"}})
	worktree := strings.TrimSpace(f.Agency("path", "fix").Stdout)
	for _, ended := range []bool{true, false} {
		var first struct {
			TimedOut bool `json:"timed_out"`
		}
		c.must(&first, "run_verify", object{"run": "fix", "timeout_seconds": 1})
		if !first.TimedOut {
			t.Fatal("a check that waits has ended")
		}
		write(filepath.Join(worktree, "a.txt"), fmt.Sprintf("bad %v", ended))
		commit(worktree)
		write(gate, "")
		if ended {
			for deadline := time.Now().Add(timeout); !strings.Contains(f.Agency("show", "fix", "--json").Stdout, `"verdict": "pass"`); {
				if time.Now().After(deadline) {
					t.Fatal("the checks of the old work do not end")
				}
			}
		}
		var second struct {
			Passed bool
			Commit string
			Checks []struct{ Verdict string }
		}
		c.must(&second, "run_verify", object{"run": "fix"})
		head := strings.TrimSpace(f.Command("", "git", "-C", worktree, "rev-parse", "HEAD").Stdout)
		if second.Passed || second.Commit != head || len(second.Checks) != 1 || second.Checks[0].Verdict != "fail" {
			t.Errorf("got %+v for %s", second, head)
		}
		if err := os.Remove(gate); err != nil {
			t.Fatal(err)
		}
		write(filepath.Join(worktree, "a.txt"), "good again")
		commit(worktree)
	}
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
