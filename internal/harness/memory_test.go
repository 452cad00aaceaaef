package harness_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"agency"
	"agency/internal/harness"
	"agency/internal/protocol"
)

// A talk that is made from the memory of another one goes on as that one would, after each line of each
// recorded conversation.
func TestMemory(t *testing.T) {
	t.Parallel()
	recorded, err := filepath.Glob("*/testdata/*.wire.jsonl")
	if err != nil || len(recorded) < 5 {
		t.Fatalf("%d conversations, %v", len(recorded), err)
	}
	for _, path := range recorded {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		kind, acp, _ := strings.Cut(path, "/testdata/")
		kind = map[string]string{"claude": "claude_code", "acp": strings.TrimSuffix(acp, ".wire.jsonl")}[kind]
		if kind == "" {
			kind = "codex"
		}
		dialect := harness.Dialect(agency.RunnerKind(kind), "")
		if dialect == nil {
			t.Fatalf("%s is of %s, which has no protocol", path, kind)
		}
		begin := protocol.Start{Dir: "/work"}
		talk, next := protocol.New(dialect, begin), protocol.New(dialect, begin)
		intend := func(s agency.Saying) {
			i := protocol.Intent{Saying: s, Frame: "frame"}
			if a, b := talk.Intend(i), next.Intend(i); a != b {
				t.Fatalf("%s: %q, want %q", path, b, a)
			}
		}
		intend(protocol.Hello())
		intend(agency.Saying{Kind: agency.SaysMessage, ID: "m1", Text: "begin", By: agency.User})
		for line := range strings.Lines(string(data)) {
			want, got := talk.Hear([]byte(line)), next.Hear([]byte(line))
			if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(next.Unproven(), talk.Unproven()) {
				t.Fatalf("%s: after %s got %+v, want %+v", path, line, got, want)
			}
			for _, e := range want.Evidence {
				if e.Signal == agency.SignalAsked {
					intend(agency.Saying{Kind: agency.SaysAnswer, ID: e.ID, Decision: agency.Allow, By: agency.User})
				}
			}
			memory, err := next.Memory()
			if next = protocol.New(dialect, begin); err == nil {
				err = next.Remember(memory)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}
