package api_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/api"
)

func TestDecode(t *testing.T) {
	t.Parallel()
	var got agency.Spec
	err := api.Decode([]byte(` { "repo": ".", "runner": {"kind": "shell", "args": ["-x"]}, "prompt": {"text": "a"}, "tags": null,
		"inputs": [{"path": "a.txt"}], "limits": {"max_minutes": 5}, "headless": true } `+"\n"), &got)
	want := agency.Spec{
		Repo: ".", Runner: agency.SpecRunner{Kind: agency.Shell, Args: []string{"-x"}}, Prompt: agency.SpecPrompt{Text: "a"},
		Inputs: []agency.SpecInput{{Path: "a.txt"}}, Limits: agency.SpecLimits{MaxMinutes: 5}, Headless: new(true),
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"an unknown key", "{\n  \"promt\": {}}", `2:3: unknown key "promt"; did you mean "prompt"?`},
		{"an unknown key without a likeness", `{"zzzzzzzz": 1}`, `1:2: unknown key "zzzzzzzz"; known are preset, repo, base_ref, new_branch, name, type, tags, runner, prompt, inputs, limits, resources, env, headless`},
		{"an unknown key inside", `{"runner": {"kind": "shell", "modle": "a"}}`, `1:30: unknown key "runner.modle"; did you mean "model"?`},
		{"an unknown key in a list", `{"inputs": [{"path": "a"}, {"pth": "b"}]}`, `1:29: unknown key "inputs[].pth"; did you mean "path"?`},
		{"the wrong case", `{"Name": "a"}`, `1:2: unknown key "Name"; did you mean "name"?`},
		{"a key twice", "{\"name\": \"a\",\n\"name\": \"b\"}", `2:1: key "name" is there twice`},
		{"a key twice inside", `{"limits": {"max_minutes": 1, "max_minutes": 2}}`, `1:31: key "limits.max_minutes" is there twice`},
		{"a key with control characters", `{"\u001b[31m": 1}`, `1:2: unknown key "\x1b[31m"; known are `},
		{"text after it", "{}\n{}", `2:1: there is more text after the end of the document`},
		{"junk after it", "{} x", `1:3: there is more text after the end of the document`},
		{"nothing", "", `1:1: the document ends too early`},
		{"half a document", "{\"name\":\n", `2:1: the document ends too early`},
		{"no JSON", "name: a", `1:2: invalid character 'a' in literal null (expecting 'u')`},
		{"a list", `[]`, `1:1: the document must be an object, not array`},
		{"text", `"a"`, `1:3: the document must be an object, not string`},
		{"a number for text", `{"name": 5}`, `1:10: name must be text, not number`},
		{"text for a list", `{"tags": "a"}`, `1:12: tags must be a list, not string`},
		{"text for an object", `{"runner": "shell"}`, `1:18: runner must be an object, not string`},
		{"text for a truth", `{"headless": "yes"}`, `1:18: headless must be true or false, not string`},
		{"half a number", `{"limits": {"max_minutes": 1.5}}`, `1:30: limits.max_minutes must be a whole number, not number 1.5`},
		{"a huge number", `{"limits": {"max_minutes": 1e400}}`, `1:32: limits.max_minutes must be a whole number, not number 1e400`},
		{"a number with a thousand digits", `{"limits": {"max_minutes": ` + strings.Repeat("9", 1000) + `}}`, `1:1027: limits.max_minutes must be a whole number, not number 999`},
		{"deep lists", `{"tags": ` + strings.Repeat("[", 1<<20), `1:73: nested too deeply`},
		{"deep objects", `{"name": ` + strings.Repeat(`{"":`, 1<<20), `1:262: nested too deeply`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := api.Decode([]byte(tt.in), new(agency.Spec))
			if got := fmt.Sprint(err); !strings.HasPrefix(got, tt.want) {
				t.Errorf("got  %.200s\nwant %s", got, tt.want)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{"repo":".","runner":{"kind":"shell"},"prompt":{"text":"a"},"inputs":[{"path":"b","mode":"read"}],"limits":{"max_minutes":1}}`,
		`{"Repo":"."}`, `{"tags":["a"],"tags":[]}`, `{} {}`, "{\n\"name\":\n5}", `null`, `{"":{"":[[]]}}`, "\x00", "\xff", `{"name":"\ud800"}`, `[[[`, `1e999`,
	} {
		f.Add([]byte(s))
	}
	position := regexp.MustCompile(`^[1-9][0-9]*:[1-9][0-9]*: .`)
	f.Fuzz(func(t *testing.T, data []byte) {
		var s agency.Spec
		if err := api.Decode(data, &s); err != nil {
			if !position.MatchString(err.Error()) {
				t.Errorf("the error has no place: %q", err)
			}
			return
		}
		again, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var same agency.Spec
		if err := api.Decode(again, &same); err != nil {
			t.Errorf("%s was written and cannot be read: %v", again, err)
		}
	})
}

func TestEnvelopeRoundTrip(t *testing.T) {
	t.Parallel()
	env := api.Success(api.SendInputResponse{RunID: "r_1", Delivered: true, Effect: "<output> & more"})
	var out bytes.Buffer
	if err := api.Encode(&out, env); err != nil {
		t.Fatal(err)
	}
	const want = `{
  "ok": true,
  "schema_version": 1,
  "data": {
    "run_id": "r_1",
    "delivered": true,
    "confirmed": false,
    "effect": "<output> & more",
    "composer": ""
  }
}
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var back api.Envelope
	if err := api.Decode(out.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if err := back.Err(); err != nil || !back.OK {
		t.Errorf("a success came back as %v", err)
	}
}

func TestFailureRoundTrip(t *testing.T) {
	t.Parallel()
	sent := fmt.Errorf("show run: %w",
		agency.Errorf(agency.CodeRunAmbiguous, "%q could be two: %w", "fix", errors.New("a cause")).WithHint("type more").WithDetail("candidates", []string{"a", "b"}))
	var out bytes.Buffer
	if err := api.Encode(&out, api.Failure(sent)); err != nil {
		t.Fatal(err)
	}
	var env api.Envelope
	if err := api.Decode(out.Bytes(), &env); err != nil {
		t.Fatal(err)
	}
	got := agency.AsError(env.Err())
	want := &agency.Error{
		Code: agency.CodeRunAmbiguous, Message: `show run: "fix" could be two: a cause`, Hint: "type more",
		Details: map[string]any{"candidates": []any{"a", "b"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// An error without details has an empty object, not null. An error that is not agency's is an
	// internal one.
	out.Reset()
	if err := api.Encode(&out, api.Failure(errors.New("a"))); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, `"details": {}`) || !strings.Contains(text, `"E_INTERNAL"`) || strings.Contains(text, `"data"`) {
		t.Errorf("got %s", text)
	}
}
