package agent_test

import (
	"slices"
	"strings"
	"testing"

	"agency"
	"agency/internal/harness/agent"
)

func TestParseScreen(t *testing.T) {
	t.Parallel()
	const fine = "version = 1\n[[pattern]]\nname = \"a\"\nlast = [\"?\"]\nall = [\"Trust\"]\nsignal = \"asked\"\nkind = \"dialog\"\ntext = \"t\"\nconfidence = 0.5\n"
	known, err := agent.ParseScreen([]byte(fine))
	if err != nil || len(known) != 1 {
		t.Fatalf("got %+v, %v", known, err)
	}
	for old, tt := range map[string]struct{ new, want string }{
		"version = 1":      {"version = 2", "version is 2, not 1"},
		`name = "a"`:       {`nam = "a"`, `3:1: unknown key "pattern.nam"`},
		`signal = "asked"`: {`signal = "turn_ended"`, `pattern 1: signal is "turn_ended"`},
		`kind = "dialog"`:  {`kind = "joke"`, `pattern 1: kind is "joke"`},
		"confidence = 0.5": {"confidence = 1.0", "pattern 1: confidence must be"},
		`last = ["?"]`:     {`last = [""]`, "pattern 1: an empty text"},
		"[[pattern]]":      {"[[pattern", "2:10: not readable"},
		`all = ["Trust"]`:  {`all = 3`, "not readable"},
	} {
		_, err := agent.ParseScreen([]byte(strings.Replace(fine, old, tt.new, 1)))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s", tt.new, err, tt.want)
		}
	}
	for name, tt := range map[string]struct {
		lines []string
		shows bool
	}{
		"a dialog":            {[]string{"Trust this?", "", "yes or no?", "", ""}, true},
		"the end is missing":  {[]string{"Trust this?", "", "done"}, false},
		"the rest is missing": {[]string{"", "yes or no?"}, false},
		"quoted far above":    {append([]string{"Trust this?"}, append(slices.Repeat([]string{"text"}, 30), "?")...), false},
		"nothing":             {nil, false},
	} {
		evidence := known.Read(tt.lines)
		if tt.shows != (len(evidence) == 1) || tt.shows && (evidence[0].Kind != agency.AsksDialog || evidence[0].Source != agency.FromScreen) {
			t.Errorf("%s: got %+v", name, evidence)
		}
	}
}

func FuzzParseScreen(f *testing.F) {
	f.Add([]byte("version = 1\n[[pattern]]\nname = \"a\"\nlast = [\"?\"]\nsignal = \"busy\"\nconfidence = 0.5\n"), "a?")
	f.Fuzz(func(t *testing.T, data []byte, screen string) {
		known, err := agent.ParseScreen(data)
		if err != nil {
			return
		}
		for _, e := range known.Read(strings.Split(screen, "\n")) {
			if e.Confidence <= 0 || e.Confidence >= 1 || e.Signal == "" {
				t.Errorf("got %+v", e)
			}
		}
	})
}
