package trace_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"agency"
	"agency/internal/trace"
)

// Steps that overlap get lanes of their own, and a lane is used again when its step is over.
func TestLanes(t *testing.T) {
	steps := trace.New("daemon")
	outer := steps.Begin("step", "worktree")
	inner := steps.Begin("git branch")
	inner()
	again := trace.Begin(trace.With(t.Context(), steps), "git worktree")
	again()
	outer()
	want := []agency.Span{{Name: "git branch", Lane: 2}, {Name: "git worktree", Lane: 2}, {Name: "step worktree", Lane: 1}}
	got := steps.Spans()
	if len(got) != len(want) {
		t.Fatalf("the spans are %v", got)
	}
	for i, s := range got {
		if s.Name != want[i].Name || s.Lane != want[i].Lane || s.Process != "daemon" || s.End.Before(s.Begin) {
			t.Errorf("span %d is %+v, not %s on lane %d", i, s, want[i].Name, want[i].Lane)
		}
	}
	trace.Begin(t.Context(), "without a trace")()
}

// A trace is a JSON array: the names of the processes, and the steps in the order of their begins.
func TestWrite(t *testing.T) {
	client, daemon := trace.New("agency"), trace.New("daemon")
	end := client.Begin("request")
	daemon.Begin("run.create")()
	end()
	client.Add(daemon.Spans()...)
	var text bytes.Buffer
	if err := trace.Write(&text, client.Spans()); err != nil {
		t.Fatal(err)
	}
	var events []struct {
		Name, Phase string
		Args        map[string]string
	}
	if err := json.Unmarshal(text.Bytes(), &events); err != nil {
		t.Fatalf("%v: %s", err, &text)
	}
	if len(events) != 3 || events[0].Args["name"] != "agency" || events[1].Name != "request" || events[2].Name != "run.create" {
		t.Errorf("the trace is %s", &text)
	}
}
