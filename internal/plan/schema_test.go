package plan_test

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"agency"
	"agency/internal/plan"
)

// allowed reads the published schema as an independent program would. The function that it returns
// fails for a plan in YAML that the schema does not accept.
func allowed(t *testing.T) func(text string) error {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(agency.PlanSchema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("plan.json", doc); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("plan.json")
	if err != nil {
		t.Fatal(err)
	}
	return func(text string) error {
		var value any
		if err := yaml.Load([]byte(text), &value); err != nil {
			return err
		}
		data, err := json.Marshal(value)
		if err != nil {
			return err
		}
		if value, err = jsonschema.UnmarshalJSON(strings.NewReader(string(data))); err != nil {
			return err
		}
		return compiled.Validate(value)
	}
}

func TestSchemaHasTheKeysOfTheReader(t *testing.T) {
	t.Parallel()
	type table struct{ Properties map[string]json.RawMessage }
	var schema struct {
		table
		Defs struct {
			Setting map[string]json.RawMessage
			Agent   table
		} `json:"$defs"`
	}
	var defaults table
	if err := json.Unmarshal([]byte(agency.PlanSchema), &schema); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(schema.Properties["defaults"], &defaults); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		schema map[string]json.RawMessage
		reader []string
	}{
		"plan": {schema.Properties, plan.PlanKeys()}, "defaults": {defaults.Properties, plan.SettingKeys()},
		"settings": {schema.Defs.Setting, plan.SettingKeys()}, "agent": {schema.Defs.Agent.Properties, plan.AgentKeys()},
	} {
		slices.Sort(test.reader)
		if inSchema := slices.Sorted(maps.Keys(test.schema)); !slices.Equal(inSchema, test.reader) {
			t.Errorf("%s: the schema has %v and the reader %v", name, inSchema, test.reader)
		}
	}
}

func TestSchemaAgreesWithTheReader(t *testing.T) {
	t.Parallel()
	allows, root := allowed(t), t.TempDir()
	for _, rest := range []string{
		"", "name: 3", "name: ''", "name: [a]", "after: []", "after: {b: c}", "wave: 1", "wave: 0", "wave: 5001", "touches: [a/**]", "touches: ['']", "runner: codex", "runner: {a: b}",
		"preset: x", "model: ''", "args: [1, true]", "args: x", "tags: [worker]", "tags: [Worker]", "headless: false", "headless: maybe", "timeout: 1h30m", "timeout: 1.5h", "timeout: 90",
		"timeout: -2h", "timeout: soon", "idle_timeout: 2m", "retries: 0", "retries: 101", "retries: -1", "retries: 1.5", "done_when: exit", "done_when: merged", "base: deps", "prompt_path: x.md", "mood: good",
	} {
		text := "agents: [{id: a, prompt: x, " + rest + "}]"
		if rest == "" {
			text = "agents: [{id: a, prompt: x}]"
		}
		_, err := load(root, text)
		if schemaErr := allows(text); (schemaErr == nil) != (err == nil) {
			t.Errorf("%s: the schema says %v and the reader %v", rest, schemaErr, err)
		}
	}
	for _, text := range []string{
		"agents: []", "agents: {}", "agents: [{prompt: x}]", "agents: [{id: a}]", "agents: [{id: a/b, prompt: x}]", "agents: [{id: 7, prompt: x}]", "name: a", "[]", "on_failure: stop\nagents: [{id: a, prompt: x}]",
		"agents: {a: {prompt: x}, b: {prompt: x, after: a}}", "agents: {a: {id: a, prompt: x}}", "agents: {a/b: {prompt: x}}", "agents: {a: {}}", "agents: [{id: a, prompt: x}, {id: b, prompt: x, after: a}]",
		"agents: [{id: a, prompt: x}, {id: b, prompt: x, after: {a: b}}]",
		"on_failure: x\nagents: [{id: a, prompt: x}]", "max_parallel: 0\nagents: [{id: a, prompt: x}]", "max_parallel: 1001\nagents: [{id: a, prompt: x}]", "limits: {codex: 2}\nagents: [{id: a, prompt: x}]",
		"limits: {codex: 0}\nagents: [{id: a, prompt: x}]", "limits: []\nagents: [{id: a, prompt: x}]", "defaults: {retries: 2}\nagents: [{id: a, prompt: x}]", "defaults: {id: 2}\nagents: [{id: a, prompt: x}]", "base: main\nagents: [{id: a, prompt: x}]",
	} {
		_, err := load(root, text)
		if schemaErr := allows(text); (schemaErr == nil) != (err == nil) {
			t.Errorf("%s: the schema says %v and the reader %v", text, schemaErr, err)
		}
	}
}

// TestExamplesOfTheDocs reads every YAML block of the document as a plan.
func TestExamplesOfTheDocs(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/plan.md")
	if err != nil {
		t.Fatal(err)
	}
	root := repository(t, map[string]string{"prompts/001-schema.md": "Design the schema."})
	allows := allowed(t)
	blocks := strings.Split(string(doc), "```yaml\n")[1:]
	if len(blocks) < 2 {
		t.Fatal("the document shows no plans")
	}
	for _, block := range blocks {
		text, _, _ := strings.Cut(block, "```")
		if _, err := load(root, text); err != nil {
			t.Errorf("%v in\n%s", err, text)
		}
		if err := allows(text); err != nil {
			t.Errorf("%v in\n%s", err, text)
		}
	}
}
