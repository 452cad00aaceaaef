package mcp_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// enum returns the values that an argument of a tool can have.
func (c *client) enum(tool, argument string) []string {
	c.t.Helper()
	list, err := c.session.ListTools(c.t.Context(), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	type property struct {
		Enum  []string
		Items struct{ Enum []string }
	}
	for _, t := range list.Tools {
		if t.Name != tool {
			continue
		}
		var schema struct{ Properties map[string]property }
		data, err := json.Marshal(t.InputSchema)
		if err == nil {
			err = json.Unmarshal(data, &schema)
		}
		if err != nil {
			c.t.Fatal(err)
		}
		p := schema.Properties[argument]
		return append(p.Enum, p.Items.Enum...)
	}
	return nil
}

// Where only some values are right, the schema lists them.
func TestClosedSets(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := connect(t, f, f.Repo, nil, "--tools", "all")
	for _, tt := range []struct{ tool, argument, want string }{
		{"run_create", "sandbox", "process"},
		{"run_create", "network", "none"},
		{"run_list", "status", "needs input"},
		{"run_wait", "for", "ready for review"},
		{"run_answer", "decision", "allow"},
		{"report_status", "status", "help"},
		{"session_start", "on_failure", "ask"},
		{"session_plan", "on_failure", "stop"},
		{"session_show", "status", "cancelled"},
	} {
		if got := c.enum(tt.tool, tt.argument); !slices.Contains(got, tt.want) {
			t.Errorf("%s of %s can be %q, which lacks %q", tt.argument, tt.tool, got, tt.want)
		}
	}
	c.must(nil, "run_list", object{"status": []string{"needs input"}})
	c.refused("E_USAGE", "run_list", object{"status": []string{"sleepy"}})
}

// An orchestrator sees what it can start, and cleans up what it no longer needs.
func TestStartAndRemove(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := connect(t, f, f.Repo, nil)
	var config struct {
		Runners []struct {
			Name                        string
			Default, Installed, Allowed bool
		}
		Presets []object
	}
	c.must(&config, "config_list", nil)
	if i := len(config.Runners) - 1; i < 1 || config.Runners[i].Name != "scripted" || !config.Runners[i].Default || !config.Runners[i].Allowed || !config.Runners[i].Installed {
		t.Errorf("got %+v", config)
	}
	c.must(nil, "run_create", object{"name": "fix", "prompt": "write made.txt blue\nready Painted | cat made.txt\nwait-file .agency/end\n"})
	c.must(nil, "run_wait", object{"runs": []string{"fix"}, "timeout_seconds": 60})
	code, hint := c.failed("run_remove", object{"run": "fix"})
	if code != "E_INVALID_STATE" || strings.Contains(hint, "agency ") || !strings.Contains(hint, "run_stop(run: fix)") {
		t.Errorf("got %s with the hint %q", code, hint)
	}
	c.must(nil, "run_stop", object{"run": "fix"})
	var removed struct {
		Removed  bool
		Snapshot *object
	}
	if c.must(&removed, "run_remove", object{"run": "fix"}); !removed.Removed || removed.Snapshot == nil {
		t.Errorf("got %+v", removed)
	}
}

// What waited for the user before the tools began is not for the agent that has them.
func TestInboxBeginsWithTheTools(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if r := f.Agency("messages", "send", "--user", "--text", "old"); r.Exit != 0 {
		t.Fatal(r.Stderr)
	}
	c := connect(t, f, f.Repo, nil)
	type inbox struct {
		Messages []struct {
			ID      string
			Payload struct{ Text string }
		}
	}
	var got inbox
	if c.must(&got, "messages_poll", nil); len(got.Messages) != 0 {
		t.Errorf("got %+v", got)
	}
	c.must(nil, "messages_send", object{"to_user": true, "text": "new"})
	if c.must(&got, "messages_poll", object{"wait_seconds": 50}); len(got.Messages) != 1 || got.Messages[0].Payload.Text != "new" {
		t.Errorf("got %+v", got)
	}
}

// A script that pipes requests in gets all answers, although its output ends first.
func TestPipe(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	requests := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"sh","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_create","arguments":{"name":"piped","prompt":"ask Which?"}}}
`
	r := f.AgencyIn(requests, "mcp")
	answers := strings.Split(strings.TrimSpace(r.Stdout), "\n")
	if r.Exit != 0 || len(answers) != 2 || !strings.Contains(answers[1], `"id":2`) || !strings.Contains(answers[1], `\"name\":\"piped\"`) {
		t.Errorf("exit %d, %q\n%s", r.Exit, answers, r.Stderr)
	}
}
