package command_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"agency/internal/cli/command"
	"agency/internal/cli/term"
)

// A table of runs that is too wide shortens the handles first, and shortens nothing while there is
// room.
func TestSqueeze(t *testing.T) {
	t.Parallel()
	table := func() [][]string {
		return [][]string{
			{"RUN_ID", "NAME", "STATUS", "SUMMARY", "PR"},
			{"1122-fix-the-login-test-a1b2", "fix-login-test", "◐ ready for review", "Which OAuth 界界 library should I use for…", "#123"},
		}
	}
	for width, want := range map[int]string{
		120: "1122-fix-the-login-test-a1b2  fix-login-test  ◐ ready for review  Which OAuth 界界 library should I use for…  #123",
		100: "1122-fix-the-…  fix-login-test  ◐ ready for review  Which OAuth 界界 library should I use for…  #123",
		80:  "1122-fix-the-…  fix-login-t…  ◐ ready for review  Which OAuth 界界 librar…  #123",
		60:  "1122-fix-…  fix-login-t…  ◐ ready for review  Which O…  #123",
	} {
		rows := table()
		command.Squeeze(rows, width)
		got := strings.Split(term.PaintedTable(rows, -1, func(_ int, s string) string { return s }), "\n")[1]
		if got != want || term.Width(got) > width {
			t.Errorf("%d columns: got %q of %d, want %q", width, got, term.Width(got), want)
		}
	}
}

func TestSqueezeFits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cell := rapid.StringOfN(rapid.RuneFrom([]rune("abc 界🙂é́-")), 0, 60, -1)
		rows := [][]string{{"RUN_ID", "NAME", "STATUS", "SUMMARY", "PR"}}
		for range rapid.IntRange(0, 5).Draw(t, "runs") {
			rows = append(rows, []string{cell.Draw(t, "handle"), cell.Draw(t, "name"), "◐ ready for review", cell.Draw(t, "summary"), "#12345"})
		}
		command.Squeeze(rows, 80)
		for line := range strings.Lines(term.PaintedTable(rows, -1, func(_ int, s string) string { return s })) {
			if n := term.Width(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("%q has %d columns", line, n)
			}
		}
	})
}
