package agency_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"agency"
)

// facts are all facts that differ in what decides a state.
func facts() []agency.Fact {
	causes := []agency.EndedBy{
		"", agency.EndedByRunner, agency.EndedByStop, agency.EndedBySignal, agency.EndedByTimeLimit, agency.EndedBySessionLost, agency.EndedByStartFailed,
	}
	all := []agency.Fact{}
	for _, kind := range append(agency.FactKinds(), "", "paused") {
		for _, code := range []int{0, 1, 137} {
			for _, signal := range []string{"", "SIGKILL"} {
				for _, by := range causes {
					for _, stop := range []bool{false, true} {
						all = append(all, agency.Fact{Kind: kind, ExitCode: code, Signal: signal, EndedBy: by, StopRequested: stop})
					}
				}
			}
		}
	}
	return all
}

// table reads the rows of the table of a document whose header holds the column names, without the
// header.
func table(t *testing.T, path string, header ...string) [][]string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rows, inside := [][]string{}, false
	for line := range strings.Lines(string(data)) {
		if !strings.HasPrefix(line, "|") {
			inside = false
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case slices.Equal(cells, header):
			inside = true
		case inside && !strings.HasPrefix(cells[0], "---"):
			rows = append(rows, cells)
		}
	}
	if len(rows) == 0 {
		t.Fatalf("%s has no table %q", path, header)
	}
	return rows
}

func TestNextAgreesWithTheDocument(t *testing.T) {
	t.Parallel()
	clean := func(f agency.Fact) bool {
		return f.Kind == agency.FactExited && f.Signal == "" && f.ExitCode == 0 && f.EndedBy == agency.EndedByRunner
	}
	means := map[string]func(agency.Fact) bool{
		"started":                            func(f agency.Fact) bool { return f.Kind == agency.FactStarted },
		"start_failed":                       func(f agency.Fact) bool { return f.Kind == agency.FactStartFailed },
		"exited with 0 by itself":            clean,
		"exited in any other way":            func(f agency.Fact) bool { return f.Kind == agency.FactExited && !clean(f) },
		"lost":                               func(f agency.Fact) bool { return f.Kind == agency.FactLost },
		"exited, after a stop was asked for": func(f agency.Fact) bool { return f.Kind == agency.FactExited && f.StopRequested },
		"lost, after a stop was asked for":   func(f agency.Fact) bool { return f.Kind == agency.FactLost && f.StopRequested },
		"anything":                           func(agency.Fact) bool { return true },
	}
	type key struct {
		from agency.State
		fact agency.Fact
	}
	want := map[key]agency.State{}
	for _, row := range table(t, "docs/state-machine.md", "from", "fact", "to") {
		name, _, _ := strings.Cut(row[1], ":")
		matches, ok := means[name]
		if !ok {
			t.Fatalf("the document has a row %q that this test does not know", row)
		}
		to, _, _ := strings.Cut(row[2], " ")
		for from := range strings.SplitSeq(row[0], ", ") {
			for _, f := range facts() {
				if matches(f) && to != "refused:" {
					want[key{agency.State(from), f}] = agency.State(to) // a later row, about a stop, wins
				}
			}
		}
	}
	for _, from := range append(agency.States(), "", "paused") {
		for _, f := range facts() {
			got, err := agency.Next(from, f)
			to, allowed := want[key{from, f}]
			if allowed != (err == nil) || (allowed && got != to) || (!allowed && got != from) {
				t.Errorf("Next(%q, %+v) = %q, %v; the document says %q", from, f, got, err, to)
			}
			if err != nil && !agency.IsCode(err, agency.CodeInvalidState) {
				t.Errorf("Next(%q, %+v) is refused with %v", from, f, agency.AsError(err).Code)
			}
		}
	}
}

func TestNextLives(t *testing.T) {
	t.Parallel()
	all := facts()
	rapid.Check(t, func(t *rapid.T) {
		state, final := agency.Queued, agency.State("")
		for _, f := range rapid.SliceOfN(rapid.SampledFrom(all), 0, 30).Draw(t, "facts") {
			next, err := agency.Next(state, f)
			again, err2 := agency.Next(state, f)
			if next != again || (err == nil) != (err2 == nil) {
				t.Fatalf("%s and %+v lead to %s and to %s", state, f, next, again)
			}
			if !slices.Contains(agency.States(), next) {
				t.Fatalf("%s and %+v lead to %q, which is no state", state, f, next)
			}
			if final != "" && (err == nil || next != final) {
				t.Fatalf("%s was final, and %+v led to %s", final, f, next)
			}
			if err != nil && next != state {
				t.Fatalf("a refused %+v changed %s to %s", f, state, next)
			}
			if err == nil && next.Final() {
				final = next
				if f.StopRequested != (next == agency.Killed) && f.Kind != agency.FactStartFailed {
					t.Fatalf("%s and %+v lead to %s", state, f, next)
				}
			}
			state = next
		}
	})
}

func TestExitFailure(t *testing.T) {
	t.Parallel()
	tests := []struct {
		exit agency.Exit
		code agency.Code
		text string
	}{
		{agency.Exit{EndedBy: agency.EndedByRunner}, "", ""},
		{agency.Exit{EndedBy: agency.EndedByRunner, ExitCode: 3}, "", "exit 3"},
		{agency.Exit{EndedBy: agency.EndedByRunner, ExitCode: 137, Signal: "SIGKILL"}, "", "ended by SIGKILL"},
		{agency.Exit{EndedBy: agency.EndedByTimeLimit, Signal: "SIGTERM"}, agency.CodeTimeLimit, "stopped at its time limit"},
		{agency.Exit{EndedBy: agency.EndedBySessionLost, Signal: "SIGHUP"}, agency.CodeRunnerDisappeared, "the tmux session was killed from outside"},
		{agency.Exit{EndedBy: agency.EndedByStartFailed, Error: "no such program"}, agency.CodeRunnerStartFailed, "no such program"},
	}
	for _, tt := range tests {
		if code, text := tt.exit.Failure(); code != tt.code || text != tt.text {
			t.Errorf("%+v is %q, %q; want %q, %q", tt.exit, code, text, tt.code, tt.text)
		}
		// Whatever ends without a failure is completed, and nothing else is.
		state, err := agency.Next(agency.Running, tt.exit.Fact(false))
		if clean := tt.text == ""; err != nil || clean != (state == agency.Completed) {
			t.Errorf("%+v leads to %s, %v", tt.exit, state, err)
		}
	}
}
