package script_test

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// docs/ways-out.md lists the ways out that the script tries, with what it found.
func TestWaysOutAreDocumented(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("testdata/sandbox-escape.txtar")
	if err != nil {
		t.Fatal(err)
	}
	hungry, err := os.ReadFile("testdata/sandbox-limits.txtar")
	if err != nil {
		t.Fatal(err)
	}
	ended, err := os.ReadFile("testdata/sandbox-limits-reached.txtar")
	if err != nil {
		t.Fatal(err)
	}
	docs, err := os.ReadFile("../../docs/ways-out.md")
	if err != nil {
		t.Fatal(err)
	}
	script, found, _ := bytes.Cut(script, []byte("-- want.txt --\n"))
	_, open, _ := strings.Cut(string(script), "-- open.txt --\n")
	if bytes.Count(found, []byte("\n")) < 50 || strings.Count(open, "\n") < 5 {
		t.Fatalf("the script lists only %q, and as open %q", found, open)
	}
	for line := range strings.Lines(open) {
		way, _, _ := strings.Cut(line, ": ")
		if row := "| " + way + " | open |\n"; !strings.Contains(string(docs), row) {
			t.Errorf("docs/ways-out.md has no row %q", row)
		}
	}
	_, limits, _ := strings.Cut(string(hungry), "-- want.txt --\n")
	_, ends, _ := strings.Cut(string(ended), "-- ends.txt --\n")
	if strings.Count(limits, "\n") < 5 || strings.Count(ends, "\n") < 3 {
		t.Fatalf("the scripts of limits list only %q and %q", limits, ends)
	}
	for line := range strings.Lines(string(found) + limits + ends) {
		way, outcome, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if row := "| " + way + " | " + outcome + " | " + outcome + " |\n"; !strings.Contains(string(docs), row) {
			t.Errorf("docs/ways-out.md has no row %q", row)
		}
	}
}
