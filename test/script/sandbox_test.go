package script_test

import (
	"os"
	"strings"
	"testing"
)

// docs/sandbox.md lists the ways out that the script tries, with what it found.
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
	docs, err := os.ReadFile("../../docs/sandbox.md")
	if err != nil {
		t.Fatal(err)
	}
	_, found, _ := strings.Cut(string(script), "-- want.txt --\n")
	if strings.Count(found, "\n") < 50 {
		t.Fatalf("the script lists only %q", found)
	}
	_, limits, _ := strings.Cut(string(hungry), "-- ends.txt --\n")
	limits = strings.Replace(limits, "-- want.txt --\n", "", 1)
	found += limits
	for line := range strings.Lines(found) {
		way, outcome, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if row := "| " + way + " | " + outcome + " | " + outcome + " |\n"; !strings.Contains(string(docs), row) {
			t.Errorf("docs/sandbox.md has no row %q", row)
		}
	}
}
