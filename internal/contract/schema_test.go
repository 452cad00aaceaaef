package contract_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"agency"
	"agency/internal/contract"
)

// schema reads the published schema as an independent program would.
func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(contract.Schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("runner-status.json", doc); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("runner-status.json")
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

// allows reports whether the schema accepts a document.
func allows(s *jsonschema.Schema, doc string) bool {
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(doc))
	return err == nil && s.Validate(value) == nil
}

func TestSchema(t *testing.T) {
	t.Parallel()
	s := schema(t)
	const head = `{"schema_version":"1.0","summary":"Adds a test",`
	for name, test := range map[string]struct {
		doc  string
		want bool
	}{
		"working":                {head + `"status":"working"}`, true},
		"needs input":            {head + `"status":"needs_input","questions":["", "Which?"]}`, true},
		"blocked":                {head + `"status":"blocked","blockers":["No network"]}`, true},
		"ready":                  {head + `"status":"ready_for_review","how_to_test":"make test"}`, true},
		"everything":             {head + `"status":"working","updated_at":"now","questions":[],"blockers":null,"how_to_test":"","risks":["a"]}`, true},
		"a list":                 {`[]`, false},
		"text":                   {`"working"`, false},
		"null":                   {`null`, false},
		"cut off":                {head, false},
		"two documents":          {head + `"status":"working"} {}`, false},
		"unknown key":            {head + `"status":"working","mood":"good"}`, false},
		"a key in another case":  {head + `"status":"working","Risks":[]}`, false},
		"no status":              {head + `"risks":[]}`, false},
		"null as status":         {head + `"status":null}`, false},
		"a number as summary":    {`{"schema_version":"1.0","status":"working","summary":5}`, false},
		"null as summary":        {`{"schema_version":"1.0","status":"working","summary":null}`, false},
		"a list as status":       {head + `"status":["working"]}`, false},
		"text as questions":      {head + `"status":"needs_input","questions":"Which?"}`, false},
		"null as questions":      {head + `"status":"needs_input","questions":null}`, false},
		"a number as a question": {head + `"status":"needs_input","questions":["Which?",1]}`, false},
		"null as a question":     {head + `"status":"needs_input","questions":[null]}`, false},
		"an object as risks":     {head + `"status":"working","risks":{}}`, false},
		"another version":        {`{"schema_version":"2.0","status":"working","summary":"a"}`, false},
		"no version":             {`{"status":"working","summary":"a"}`, false},
		"another status":         {head + `"status":"done"}`, false},
		"blank summary":          {`{"schema_version":"1.0","status":"working","summary":"\u00a0\u2003\u0085\n"}`, false},
		"almost blank summary":   {`{"schema_version":"1.0","status":"working","summary":" \ufeff"}`, true},
		"no question":            {head + `"status":"needs_input","questions":[" "]}`, false},
		"no blocker":             {head + `"status":"blocked","questions":["Why?"]}`, false},
		"no test":                {head + `"status":"ready_for_review"}`, false},
		"null as test":           {head + `"status":"ready_for_review","how_to_test":null}`, false},
	} {
		if _, err := contract.Parse([]byte(test.doc)); (err == nil) != test.want {
			t.Errorf("%s: read with %v", name, err)
		}
		if got := allows(s, test.doc); got != test.want {
			t.Errorf("%s: the schema allows it: %v", name, got)
		}
	}
	for name, doc := range map[string]string{
		"a key twice": head + `"status":"working","status":"working"}`,
		"huge":        head + `"status":"working","risks":["` + strings.Repeat("a", agency.ContractLimit) + `"]}`,
	} {
		if _, err := contract.Parse([]byte(doc)); err == nil {
			t.Errorf("%s: it was read", name)
		}
	}
}

// For any document, the schema and the reader agree.
func TestSchemaAgrees(t *testing.T) {
	t.Parallel()
	s := schema(t)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(
			rapid.SampledFrom([]any{"", " ", "\u00a0", "\ufeff", "1.0", "working", "needs_input", "blocked", "ready_for_review", "Which?"}),
			rapid.Map(rapid.String(), func(s string) any { return s }),
		)
		scalar := rapid.OneOf(text, rapid.SampledFrom([]any{nil, 1, true, map[string]any{}}))
		list := rapid.Map(rapid.SliceOfN(scalar, 0, 3), func(l []any) any { return l })
		doc := map[string]any{}
		put := func(key string, usual any, others *rapid.Generator[any]) {
			switch rapid.IntRange(0, 9).Draw(t, key) {
			case 0:
			case 1, 2:
				doc[key] = others.Draw(t, key)
			default:
				doc[key] = usual
			}
		}
		put("schema_version", "1.0", scalar)
		put("status", rapid.SampledFrom(agency.Words()).Draw(t, "word"), scalar)
		put("summary", "Adds a test", rapid.OneOf(scalar, list))
		put("updated_at", "2026-01-31T09:30:00Z", scalar)
		put("questions", []string{"Which?"}, rapid.OneOf(scalar, list))
		put("blockers", []string{}, rapid.OneOf(scalar, list))
		put("how_to_test", "make test", rapid.OneOf(scalar, list))
		put("risks", []string{}, rapid.OneOf(scalar, list))
		if rapid.IntRange(0, 20).Draw(t, "more") == 0 {
			doc[rapid.String().Draw(t, "key")] = "x"
		}
		data, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		_, err = contract.Parse(data)
		if allowed := allows(s, string(data)); allowed != (err == nil) {
			t.Errorf("the schema allows it: %v, the reader says %v: %s", allowed, err, data)
		}
	})
}
