package api_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"agency"
	"agency/internal/api"
)

// anyRuns draws runs with hostile texts, and with and without what a run may lack.
func anyRuns(t *rapid.T) []api.Run {
	text := rapid.OneOf(rapid.StringN(0, 12, -1), rapid.SampledFrom([]string{"", "plain text", `a "quote" \ <&>`, "\x1b[31m\u202e\u0085", "界 é", "\ufe0e", "}],{"}))
	at := rapid.Custom(func(t *rapid.T) time.Time {
		return time.UnixMilli(rapid.Int64Range(-1e12, 1e14).Draw(t, "ms")).UTC()
	})
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) api.Run {
		r := api.Run{
			ID: agency.RunID(text.Draw(t, "id")), Handle: text.Draw(t, "handle"), Summary: text.Draw(t, "summary"),
			Status: rapid.SampledFrom(agency.Labels()).Draw(t, "status"), Since: at.Draw(t, "since"), Attempt: rapid.Int().Draw(t, "attempt"),
			Headless: rapid.Bool().Draw(t, "headless"), Tags: rapid.SliceOf(text).Draw(t, "tags"), StallAfterMS: rapid.Int64().Draw(t, "stall"),
			Usage: agency.Usage{}.Listed(),
		}
		if rapid.Bool().Draw(t, "more") {
			code, ended := rapid.IntRange(-1, 255).Draw(t, "code"), at.Draw(t, "ended")
			r.ExitCode, r.EndedAt, r.RemovedAt = &code, &ended, &ended
			r.PR = &agency.PullRequest{Number: 7, URL: text.Draw(t, "url")}
			r.Request = &agency.Request{Text: text.Draw(t, "asks")}
			r.Diff = &agency.ChangeSize{Files: 1, Added: rapid.IntRange(0, 9).Draw(t, "added")}
		}
		return r
	}), 0, 4).Draw(t, "runs")
}

// written returns the answer with these fields of runs.
func written(t *rapid.T, runs []api.Run, fields []string, total int, spans ...agency.Span) []byte {
	rows, err := api.NewRunRows(func(yield func(*api.Run) bool) {
		for i := range runs {
			if !yield(&runs[i]) {
				return
			}
		}
	}, fields, total)
	if err != nil {
		t.Fatal(err)
	}
	var body bytes.Buffer
	if err := rows.WriteTo(&body, spans); err != nil {
		t.Fatal(err)
	}
	return body.Bytes()
}

// Rows are written as encoding/json would, and read as it would, and one that is cut off is none.
func TestRowsAreJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		runs, total := anyRuns(t), rapid.IntRange(0, 3).Draw(t, "total")
		body := written(t, runs, nil, total)
		var want bytes.Buffer
		if err := api.EncodeLine(&want, api.Success(api.ListRunsResponse{Runs: runs, Total: total})); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.String(), string(body)); diff != "" {
			t.Fatalf("(-encoding/json +rows)\n%s", diff)
		}
		for _, fields := range [][]string{nil, {"handle", "summary", "pr", "since", "removed_at", "exit_code"}, {"usage", "tags"}} {
			spans := []agency.Span{}
			if rapid.Bool().Draw(t, "traced") {
				spans = append(spans, agency.Span{Name: "step"})
			}
			part := written(t, runs, fields, total, spans...)
			env := api.Envelope{Data: new(api.ListRunsResponse)}
			if err := json.Unmarshal(part, &env); err != nil {
				t.Fatal(err)
			}
			got, steps, ok := api.ReadRows(part)
			if diff := cmp.Diff(env.Data, got); diff != "" || !ok || len(steps) != len(spans) {
				t.Errorf("%v: %t, %d steps (-encoding/json +rows)\n%s", fields, ok, len(steps), diff)
			}
			if _, _, ok := api.ReadRows(part[:rapid.IntRange(0, len(part)-1).Draw(t, "cut")]); ok {
				t.Errorf("an answer that is cut off was read")
			}
		}
	})
}

// Any other answer is left to encoding/json.
func TestReadRowsRefuses(t *testing.T) {
	t.Parallel()
	const begin = `{"ok":true,"schema_version":1,"data":{"runs":[`
	for _, text := range []string{
		``, `{}`, begin, begin + `{}]}}` + "\n", begin + `{"handle":"a"}{"handle":"b"}]}}` + "\n", begin + `{"handle":"a"},{"name":"b"}]}}` + "\n",
		begin + `{"handle":"a","handle":"b"}]}}` + "\n", begin + `{"nope":1}]}}` + "\n", begin + `{"attempt":01}]}}` + "\n", begin + `{"attempt":x}]}}` + "\n",
		begin + `{"since":}]}}` + "\n", begin + `{"pr":{"nope":1}}]}}` + "\n", begin + `{"handle":"a"}]}} ` + "\n", begin + `],"more":1}}` + "\n", begin + `{"handle":null}]}}` + "\n",
	} {
		if got, _, ok := api.ReadRows([]byte(text)); ok {
			t.Errorf("%s was read as %+v", text, got)
		}
	}
}

// The fields are those that were asked for, in that order, once; a run has no other.
func TestRowFields(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		runs := anyRuns(t)
		fields := rapid.SliceOf(rapid.SampledFrom([]string{"handle", "pr_number", "branch", "request"})).Draw(t, "fields")
		var answer struct {
			Data struct{ Runs []map[string]json.RawMessage }
		}
		if err := json.Unmarshal(written(t, runs, fields, 0), &answer); err != nil || len(answer.Data.Runs) != len(runs) {
			t.Fatalf("%d runs, %v", len(answer.Data.Runs), err)
		}
		for _, r := range answer.Data.Runs {
			for name := range r {
				if len(fields) > 0 && !slices.Contains(fields, name) {
					t.Errorf("%v: got %s", fields, name)
				}
			}
		}
	})
	if _, err := api.NewRunRows(nil, []string{"nope"}, 0); !agency.IsCode(err, agency.CodeUsage) {
		t.Errorf("an unknown field: got %v", err)
	}
}

// A writer that fails ends the answer.
func TestRowsStopAtAFailedWrite(t *testing.T) {
	t.Parallel()
	asked := 0
	rows, err := api.NewRunRows(func(yield func(*api.Run) bool) {
		for yield(&api.Run{Summary: "a summary that fills the pieces"}) {
			asked++
		}
	}, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	_ = r.Close()
	if err := rows.WriteTo(w, nil); !errors.Is(err, io.ErrClosedPipe) || asked > 1000 {
		t.Errorf("got %v after %d rows", err, asked)
	}
}

// Text is indented as encoding/json does it.
func TestIndent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		body := written(t, anyRuns(t), nil, 1)
		var want bytes.Buffer
		if err := json.Indent(&want, bytes.TrimSpace(body), "", "  "); err != nil {
			t.Fatal(err)
		}
		for _, text := range [][]byte{body, want.Bytes()} {
			if diff := cmp.Diff(want.String(), string(api.Indent(text))); diff != "" {
				t.Errorf("(-encoding/json +ours)\n%s", diff)
			}
		}
	})
	for _, text := range []string{"", "{", `"`, `"\`, `{"a":[`, "]]"} {
		_ = api.Indent([]byte(text)) // it ends
	}
}
