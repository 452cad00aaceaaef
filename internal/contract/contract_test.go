package contract_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/contract"
)

func TestParse(t *testing.T) {
	t.Parallel()
	const head = `{"schema_version":"1.0","summary":"Adds a test",`
	tests := []struct{ name, in, problem string }{
		{"working", head + `"status":"working"}`, ""},
		{"needs input", head + `"status":"needs_input","questions":["", "Which?"]}`, ""},
		{"blocked", head + `"status":"blocked","blockers":["No network"]}`, ""},
		{"ready", head + `"status":"ready_for_review","how_to_test":"make test"}`, ""},
		{"everything", head + `"status":"working","updated_at":"now","questions":[],"blockers":null,"how_to_test":"","risks":["a"]}` + "\n", ""},

		{"empty", ``, "empty"},
		{"blank", " \n", "empty"},
		{"cut off", head, "cut off in the middle"},
		{"not JSON", `status: working`, "not JSON at byte 1"},
		{"two documents", head + `"status":"working"} {}`, "more than one JSON value"},
		{"a list", `[]`, "the document must be an object"},
		{"text", `"working"`, "the document must be an object"},
		{"a key twice", head + `"status":"working","status":"blocked"}`, `key "status" is there twice`},
		{"a key in the wrong case", head + `"status":"working","Risks":[]}`, `unknown key "Risks"`},
		{"null", `null`, `the document must be an object`},
		{"unknown key", head + `"status":"working","mood":"good"}`, `unknown key "mood"`},
		{"a number as summary", `{"schema_version":"1.0","status":"working","summary":5}`, "summary must be text"},
		{"a list as status", head + `"status":["working"]}`, "status must be text"},
		{"text as questions", head + `"status":"needs_input","questions":"Which?"}`, "questions must be a list of texts"},
		{"a number as a question", head + `"status":"needs_input","questions":[1]}`, "questions must be a list of texts"},
		{"an object as risks", head + `"status":"working","risks":{}}`, "risks must be a list of texts"},
		{"another version", `{"schema_version":"2.0","status":"working","summary":"a"}`, `schema_version is "2.0", not "1.0"`},
		{"another status", head + `"status":"done"}`, `status "done" is none of working, needs_input, blocked, ready_for_review`},
		{"no summary", `{"schema_version":"1.0","status":"working","summary":" "}`, "summary is missing"},
		{"no question", head + `"status":"needs_input","questions":[" "]}`, "needs_input without questions"},
		{"no blocker", head + `"status":"blocked","questions":["Why?"]}`, "blocked without blockers"},
		{"no test", head + `"status":"ready_for_review"}`, "ready_for_review without how_to_test"},
		{"invalid UTF-8", head + "\"status\":\"working\",\"risks\":[\"\xff\"]}", "not valid UTF-8"},
		{"a NUL", head + "\"status\":\x00\"working\"}", "not JSON at byte 58"},
		{"deep", strings.Repeat(`[`, 60000), "nested too deeply"},
		{"brackets in text are not deep", head + `"status":"working","risks":["[[[[{{{{\"[["]}`, ""},
		{"huge", head + `"status":"working","risks":["` + strings.Repeat("a", agency.ContractLimit) + `"]}`, "larger than 65536 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, err := contract.Parse([]byte(tt.in))
			if fmt.Sprint(err) != tt.problem && (err != nil || tt.problem != "") {
				t.Errorf("got %v, want %q", err, tt.problem)
			}
			if err == nil && (c.Questions == nil || c.Blockers == nil || c.Risks == nil) {
				t.Errorf("%+v has a nil list, which would be null in JSON", c)
			}
		})
	}
}

func TestNewContract(t *testing.T) {
	t.Parallel()
	want := agency.NewContract(time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600)))
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := contract.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("after writing and reading (-want +got):\n%s", diff)
	}
	if want.UpdatedAt != "2026-01-02T02:04:05Z" {
		t.Errorf("it was updated at %s", want.UpdatedAt)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{"schema_version":"1.0","status":"working","summary":"a"}`,
		`{"schema_version":"1.0","status":"needs_input","summary":"a","questions":["b"]}`,
		`{"schema_version":"1.0","status":"blocked","summary":"a","blockers":[1]}`,
		`{"schema_version":"1\u001b[31m","status":"working"}`, `{"\u0007":1}`, `{"status":{"a":{"b":{"c":{}}}}}`,
		`[[[[[`, `"`, `null`, `1e999`, "\x00", "\xff", `{"summary":"\ud800"}`, `{"summary":"` + strings.Repeat("ü", 100),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := contract.Parse(data)
		if err == nil {
			if err := contract.Validate(&c); err != nil {
				t.Errorf("it was read, and then: %v", err)
			}
			return
		}
		if !cmp.Equal(c, agency.Contract{}) {
			t.Errorf("an error came with %+v", c)
		}
		text := err.Error()
		if utf8.RuneCountInString(text) > 200 || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
			t.Errorf("the error is not a short line: %q", text)
		}
		// %q may quote words of the file, so only the text before the first quote is compared.
		own, _, _ := strings.Cut(text, `"`)
		for _, word := range []string{"Go ", "json:", "agency.", "struct", "[]string", "unmarshal"} {
			if strings.Contains(own, word) {
				t.Errorf("the error speaks of %q: %q", word, text)
			}
		}
	})
}
