package plan_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"agency"
	"agency/internal/plan"
)

// Every field of an agent that decides what it does counts as a change.
func TestChangesSeeEveryKey(t *testing.T) {
	t.Parallel()
	kind := reflect.TypeFor[agency.PlanAgent]()
	for i := range kind.NumField() {
		key, _, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ",")
		key = strings.TrimSuffix(key, "_ms")
		if key == "id" || key == "prompt_path" || key == "wave" || key == "land" {
			continue
		}
		before := &agency.Plan{Agents: []agency.PlanAgent{{ID: "a"}}}
		later := &agency.Plan{Agents: []agency.PlanAgent{{ID: "a"}}}
		switch field := reflect.ValueOf(&later.Agents[0]).Elem().Field(i); field.Kind() {
		case reflect.String:
			field.SetString("x")
		case reflect.Slice:
			field.Set(reflect.ValueOf([]string{"x"}))
		case reflect.Pointer:
			field.Set(reflect.ValueOf(new(bool)))
		case reflect.Struct:
			field.Set(reflect.ValueOf(agency.Resources{Pids: 8}))
		default:
			field.SetInt(1)
		}
		if got := fmt.Sprint(plan.Changes(before, later)); got != "[{a changed ["+key+"]}]" {
			t.Errorf("%s: got %s", key, got)
		}
	}
}

func TestKeptAgents(t *testing.T) {
	t.Parallel()
	const old = `agents:
  schema: {prompt: a}
  ui: {prompt: b, after: schema}
  api: {prompt: c, after: schema}
  review: {prompt: d, after: [ui, api]}
  docs: {prompt: e}
`
	all := map[string]bool{"schema": true, "ui": true, "api": true, "review": true, "docs": true}
	for name, test := range map[string]struct {
		edit          func(text string) string
		complete      map[string]bool
		changes, kept string
	}{
		"nothing": {func(s string) string { return s }, all, "[]", "map[api:true docs:true review:true schema:true ui:true]"},
		"the order of the agents": {func(s string) string {
			return strings.Replace(strings.Replace(s, "  docs: {prompt: e}\n", "", 1), "agents:\n", "agents:\n  docs: {prompt: e}\n", 1)
		}, all, "[]", "map[api:true docs:true review:true schema:true ui:true]"},
		"the order of after": {func(s string) string { return strings.Replace(s, "[ui, api]", "[api, ui]", 1) }, all, "[]", "map[api:true docs:true review:true schema:true ui:true]"},
		"one in the middle":  {func(s string) string { return strings.Replace(s, "prompt: b", "prompt: B", 1) }, all, "[{ui changed [prompt]}]", "map[api:true docs:true schema:true]"},
		"the first":          {func(s string) string { return strings.Replace(s, "prompt: a", "prompt: A, retries: 1", 1) }, all, "[{schema changed [prompt retries]}]", "map[docs:true]"},
		"a dependency more": {func(s string) string {
			return strings.Replace(s, "after: schema}\n  api", "after: [schema, docs]}\n  api", 1)
		}, all, "[{ui changed [after]}]", "map[api:true docs:true schema:true]"},
		"one that is gone": {func(s string) string { return strings.Replace(s, "  docs: {prompt: e}\n", "", 1) }, all, "[{docs removed []}]", "map[api:true review:true schema:true ui:true]"},
		"one that is new":  {func(s string) string { return s + "  more: {prompt: f}\n" }, all, "[{more added []}]", "map[api:true docs:true review:true schema:true ui:true]"},
		"one that failed":  {func(s string) string { return s }, map[string]bool{"schema": true, "api": true, "review": true}, "[]", "map[api:true schema:true]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, err := load(t.TempDir(), old)
			if err != nil {
				t.Fatal(err)
			}
			later, err := load(t.TempDir(), test.edit(old))
			if err != nil {
				t.Fatal(err)
			}
			changes := plan.Changes(before, later)
			kept := plan.Kept(later, changes, test.complete)
			for id := range kept {
				if !kept[id] {
					delete(kept, id)
				}
			}
			if got := fmt.Sprint(changes); got != test.changes {
				t.Errorf("changes: got %s, want %s", got, test.changes)
			}
			if got := fmt.Sprint(kept); got != test.kept {
				t.Errorf("kept: got %s, want %s", got, test.kept)
			}
		})
	}
}
