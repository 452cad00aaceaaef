package mcp

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"agency"
	"agency/internal/api"
	"agency/internal/plain"
)

// The texts of agents reach a model without characters that a terminal obeys or that are invisible
// to users; everything else stays.
func TestEncode(t *testing.T) {
	t.Parallel()
	got, err := encode(map[string]any{
		"a": "red \x1b[31m\u202e\u200b<b> & \"quoted\" \\ \U000e0041\tline\nnext", "b": []any{1, nil, true, "x\x7f"},
		"c": json.RawMessage(`{"k\u001b":"\ud83d\ude00 \udb40\udc41 \u0007"}`),
	})
	want := `{"a":"red [31m<b> & \"quoted\" \\ \tline\nnext","b":[1,null,true,"x"],"c":{"k":"😀  "}}`
	if err != nil || string(got) != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
}

func FuzzEncode(f *testing.F) {
	f.Add("a\x1b[2J\u2066b\\\"")
	f.Fuzz(func(t *testing.T, text string) {
		data, err := encode(map[string]any{text: []string{text}})
		if err != nil || !json.Valid(data) {
			t.Fatalf("%v: %s", err, data)
		}
		if plain.Visible(string(data)) != string(data) {
			t.Errorf("got %q", data)
		}
	})
}

// A tool takes the arguments that its schema names: a key of the request that is not for models is
// as unknown as a misspelled one.
func TestArguments(t *testing.T) {
	t.Parallel()
	schema := &jsonschema.Schema{
		Properties: map[string]*jsonschema.Schema{"run": {}, "prompt": {}}, PropertyOrder: []string{"run", "prompt"}, Required: []string{"run"},
	}
	for text, want := range map[string]string{
		`{"run":"x"}`: "", `{}`: `the argument "run" is missing`, ``: `the argument "run" is missing`, `{"rn":"x"}`: "rn", `{"run":1}`: "run", `[]`: "", `{"run":"x"} x`: "more text",
		`{"run":"x","force":true}`: `unknown key "force"; known are run, prompt`, `{"run":"x","env":["A=b"]}`: `unknown key "env"`,
	} {
		var in api.ResumeRunRequest
		err := readArguments(json.RawMessage(text), schema, &in)
		switch {
		case text == `{"run":"x"}`:
			if err != nil || in.Run != "x" {
				t.Errorf("%s: %+v, %v", text, in, err)
			}
		case !agency.IsCode(err, agency.CodeUsage) || !strings.Contains(err.Error(), want):
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}
