package mcp_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// An orchestrator ends the turn of a worker that went the wrong way, and the worker stays.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	agent, err := filepath.Abs("../agent/acp.sh")
	if err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile(f.Config)
	if err == nil {
		err = os.WriteFile(f.Config, fmt.Appendf(config, "\n[runners.custom.goose]\nexec = %q\nprotocol = \"acp\"\n\n[mcp]\nallow = [\"custom\"]\n", agent), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, f, f.Repo, nil, "--tools", "all")
	c.must(nil, "run_create", object{"name": "fix", "runner": "goose", "prompt": "make it"})
	c.must(nil, "run_wait", object{"runs": []string{"fix"}, "for": []string{"needs input"}, "timeout_seconds": 60})
	var ended struct{ Confirmed bool }
	c.must(&ended, "run_interrupt", object{"run": "fix"})
	if !ended.Confirmed {
		t.Error("the agent was not seen to end its turn")
	}
	c.must(nil, "run_wait", object{"runs": []string{"fix"}, "for": []string{"waiting"}, "timeout_seconds": 60})
	c.refused("E_INVALID_STATE", "run_interrupt", object{"run": "fix"}) // it is at rest

	c.must(nil, "run_create", object{"name": "other", "prompt": "wait-file .agency/end"})
	c.refused("E_INVALID_STATE", "run_interrupt", object{"run": "other"}) // a terminal has no such request
	c.must(nil, "run_stop", object{"run": "other"})
}
