package mcp_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"agency/docs"
	"agency/internal/api"
)

// argument is the schema of an argument of a tool.
type argument struct {
	Type, Description string
	Enum              []string
	Items             *argument
}

// values returns the values that an argument can have; none for any.
func (a argument) values() []string {
	if a.Items != nil {
		return a.Items.Enum
	}
	return a.Enum
}

// arguments returns the arguments of each tool.
func (c *client) arguments() map[string]map[string]argument {
	c.t.Helper()
	list, err := c.session.ListTools(c.t.Context(), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	tools := map[string]map[string]argument{}
	for _, t := range list.Tools {
		var schema struct{ Properties map[string]argument }
		data, err := json.Marshal(t.InputSchema)
		if err == nil {
			err = json.Unmarshal(data, &schema)
		}
		if err != nil {
			c.t.Fatal(err)
		}
		tools[t.Name] = schema.Properties
	}
	return tools
}

// component is a schema of docs/openapi.json.
type component struct {
	Ref        string `json:"$ref"`
	Properties map[string]component
	Enum       []string
	Items      *component
	AnyOf      []component
}

// closedKeys adds the keys in a schema that have a closed set of values, with those, to keys.
func closedKeys(schemas map[string]component, s component, key string, keys map[string][]string) {
	if s.Ref != "" {
		s = schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
	}
	if len(s.Enum) > 0 && s.Enum[0] != "" {
		keys[key] = s.Enum
	}
	if s.Items != nil {
		closedKeys(schemas, *s.Items, key, keys)
	}
	for _, other := range s.AnyOf {
		closedKeys(schemas, other, key, keys)
	}
	for name, property := range s.Properties {
		closedKeys(schemas, property, name, keys)
	}
}

// onlyWords is a description that lists words and says no more.
var onlyWords = regexp.MustCompile(`^(one of:? )?[a-z_]+(, [a-z_]+)*(,|,? or) [a-z_]+$`)

// An argument whose operation takes some values only, or whose description lists them, has them in
// its schema.
func TestEveryClosedSet(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tools := connect(t, f, f.Repo, nil, "--tools", "all").arguments()
	var doc struct {
		Components struct{ Schemas map[string]component }
	}
	if err := json.Unmarshal([]byte(docs.OpenAPI), &doc); err != nil {
		t.Fatal(err)
	}
	closed := map[string]map[string][]string{} // by tool and argument
	for _, op := range api.Operations() {
		if op.Tool != nil {
			closed[op.Tool.Name] = map[string][]string{}
			closedKeys(doc.Components.Schemas, component{Ref: op.Request.Name()}, "", closed[op.Tool.Name])
		}
	}
	found := 0
	for tool, arguments := range tools {
		for name, a := range arguments {
			switch want, ok := closed[tool][name]; {
			case ok && len(a.values()) == 0:
				t.Errorf("%s of %s can only be %q, and its schema does not say so", name, tool, want)
			case ok:
				found++
			case len(a.values()) == 0 && onlyWords.MatchString(a.Description) && a.Description != "names, handles or ids":
				t.Errorf("%s of %s has no enum, and its description lists values: %q", name, tool, a.Description)
			}
		}
	}
	if found < 4 { // decision, mode, sandbox and network
		t.Errorf("only %d arguments have a closed set by their operations: %v", found, closed)
	}
}

// Where only some values are right, the schema lists them.
func TestClosedSets(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := connect(t, f, f.Repo, nil, "--tools", "all")
	tools := c.arguments()
	for _, tt := range []struct{ tool, argument, want string }{
		{"run_create", "sandbox", "process"},
		{"run_create", "network", "none"},
		{"run_create", "mode", "protocol"},
		{"run_list", "status", "needs input"},
		{"run_wait", "for", "ready for review"},
		{"run_answer", "decision", "allow"},
		{"report_status", "status", "help"},
		{"session_start", "on_failure", "ask"},
		{"session_plan", "on_failure", "stop"},
		{"session_show", "status", "cancelled"},
	} {
		if got := tools[tt.tool][tt.argument].values(); !slices.Contains(got, tt.want) {
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
