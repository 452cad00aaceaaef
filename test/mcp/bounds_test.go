package mcp_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An agent whose program lets it use all tools can start agents, but no programs of its choice.
func TestToolsStartNoPrograms(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	proof := filepath.Join(f.Root, "proof")
	config, err := os.OpenFile(f.Config, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = config.WriteString("\n[runners.custom.other]\nexec = \"touch\"\ndefault_args = [\"" + proof + "\"]\n" +
		"\n[presets.free]\nharness = \"claude\"\n[presets.free.config]\ndangerously_skip_permissions = true\n" +
		"\n[presets.script]\nharness = \"shell\"\n\n[mcp]\nmax_children = 1\n")
	if err != nil {
		t.Fatal(err)
	}
	if err := config.Close(); err != nil {
		t.Fatal(err)
	}
	c := connect(t, f, f.Repo, nil)
	script := "touch " + proof
	for _, args := range []object{
		{"prompt": script, "runner": "shell"},
		{"prompt": script, "runner": "other"},
		{"prompt": script, "preset": "script"},
		{"prompt": "x", "preset": "free"},
	} {
		c.refused("E_PERMISSION_DENIED", "run_create", args)
	}
	for _, plan := range []string{
		"agents:\n- {id: 001, runner: shell, prompt: 'touch " + proof + "'}\n",
		"agents:\n- {id: 001, runner: claude_code, prompt: x, args: [--dangerously-skip-permissions]}\n",
	} {
		c.refused("E_PERMISSION_DENIED", "session_plan", object{"yaml": plan})
		c.refused("E_PERMISSION_DENIED", "session_start", object{"yaml": plan})
	}
	if _, err := os.Stat(proof); err == nil {
		t.Error("a program of the agent's choice was run")
	}

	// Typed text stays text, also from tools that act as the user.
	c.must(nil, "run_create", object{"name": "boss", "prompt": "ask Go on?\nwait-file .agency/end"})
	c.must(nil, "run_wait", object{"runs": []string{"boss"}})
	c.refused("E_PERMISSION_DENIED", "run_send", object{"run": "boss", "text": "!touch " + proof})
	c.must(nil, "run_send", object{"run": "boss", "text": "yes"})
}

// A tool gives a new run limits, in the words that users have.
func TestToolsLimitRuns(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := connect(t, f, f.Repo, nil)
	c.must(nil, "run_create", object{"name": "small", "prompt": "say hello", "resources": object{"disk": "2g", "open_files": 128}})
	if shown := f.Agency("show", "small").Stdout; !strings.Contains(shown, "disk 2g") || !strings.Contains(shown, "open_files 128") {
		t.Errorf("the run has other limits:\n%s", shown)
	}
	c.refused("E_USAGE", "run_create", object{"prompt": "x", "resources": object{"disk": "plenty"}})
	c.refused("E_SPEC_INVALID", "run_create", object{"prompt": "x", "resources": object{"open_files": 1}})
}
