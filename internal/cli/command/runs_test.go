package command_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/term"
)

var update = flag.Bool("update", false, "write the files in testdata")

// noon is when the lists of these tests are shown.
var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// someRuns are named and nameless runs of an afternoon.
func someRuns() []api.Run {
	pr := 123
	at := func(handle, name string, label agency.Label, ago time.Duration, summary string) api.Run {
		return api.Run{
			Handle: handle, Name: name, Status: label, Summary: summary, CreatedAt: noon.Add(-ago), Since: noon.Add(-ago / 2),
			Runner: "claude_code", Repo: "/home/you/shop",
		}
	}
	runs := []api.Run{
		at("1122-speed-up-the-search-77aa", "search", agency.Working, 3*time.Minute, "Editing index.go"),
		at("1122-fix-the-login-test-a1b2", "fix-login-test", agency.NeedsInput, 12*time.Minute, "Which OAuth 界界 library should I use for the new login, the old one or the one of the shop?"),
		at("1121-rewrite-the-install-c3d4", "docs", agency.ReadyForReview, 26*time.Hour, "The guide has one page for each system"),
		at("1122-flaky-9c0d", "flaky", agency.LabelFailed, 40*time.Minute, "exit status 1"),
		at("1122-tidy-1f2e", "tidy-imports", agency.Stalled, 2*time.Hour, "(no activity for 45m)"),
	}
	runs[2].PR = &agency.PullRequest{Number: pr, State: agency.PROpen}
	runs[2].Diff = &agency.ChangeSize{Files: 9, Added: 1204, Deleted: 88}
	runs[1].Diff = &agency.ChangeSize{Files: 1, Added: 3}
	runs[3].Diff = &agency.ChangeSize{}
	return runs
}

// The list is a golden file for each width. Where room is short the columns that can be missed give
// way, never what names a run. go test ./internal/cli/command -run TestListWidths -update writes
// the files.
func TestListWidths(t *testing.T) {
	t.Parallel()
	nameless := someRuns()
	for i := range nameless {
		nameless[i].Name, nameless[i].PR = "", nil
	}
	mixed := someRuns()
	mixed[0].Name, mixed[0].Repo = "", "/home/you/api"
	for name, runs := range map[string][]api.Run{"named": someRuns(), "nameless": nameless, "mixed": mixed} {
		for _, width := range []int{40, 60, 80, 100, 120, 200} {
			table := command.NewTable(byNeed(runs), noon)
			table.Fit(width, name == "mixed")
			got := table.Text(false)
			golden(t, fmt.Sprintf("%s-%d.txt", name, width), got)
			for line := range strings.Lines(got) {
				if n := term.Width(strings.TrimSuffix(line, "\n")); n > max(width, 60) {
					t.Errorf("%s at %d: %q has %d columns", name, width, line, n)
				}
			}
			for i := range runs {
				if ref := runs[i].Ref(); !strings.Contains(got, ref) {
					t.Errorf("%s at %d: %s is cut", name, width, ref)
				}
			}
		}
		table := command.NewTable(byNeed(runs), noon)
		table.Keep(command.PipeColumns()...)
		golden(t, name+"-pipe.txt", table.Text(false))
	}
}

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "ls", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%swant\n%s", name, got, want)
	}
}

// byNeed returns runs in the order in which the daemon lists them.
func byNeed(runs []api.Run) []api.Run {
	sorted := slices.Clone(runs)
	rank := func(r *api.Run) api.Rank {
		return api.RankOf(&agency.Run{CreatedAt: r.CreatedAt, RemovedAt: r.RemovedAt}, agency.Status{Label: r.Status, Since: r.Since})
	}
	slices.SortStableFunc(sorted, func(a, b api.Run) int { return rank(&a).Compare(rank(&b)) })
	return sorted
}

// The fields that a list asks for are all that its columns need.
func TestRunFields(t *testing.T) {
	t.Parallel()
	now := noon.Add(3 * time.Hour)
	runs := append(someRuns(), api.Run{Handle: "1120-b", Status: agency.LabelKilled, Problem: "p", Summary: "s", CreatedAt: noon, RemovedAt: &noon})
	for i := range runs {
		data, err := json.Marshal(runs[i])
		if err != nil {
			t.Fatal(err)
		}
		for _, columns := range [][]command.Column{{command.ColumnRunID}, {command.ColumnSummary, command.ColumnStatus}, command.PipeColumns(), command.RunColumns()} {
			var all map[string]json.RawMessage
			if err := json.Unmarshal(data, &all); err != nil {
				t.Fatal(err)
			}
			fields := command.RunFields(columns...)
			maps.DeleteFunc(all, func(name string, _ json.RawMessage) bool { return !slices.Contains(fields, name) })
			part, err := json.Marshal(all)
			if err != nil {
				t.Fatal(err)
			}
			var got api.Run
			if err := json.Unmarshal(part, &got); err != nil {
				t.Fatal(err)
			}
			for _, c := range columns {
				if c.Cell(&got, now) != c.Cell(&runs[i], now) {
					t.Errorf("row %d, %s: got %q, want %q", i, c, c.Cell(&got, now), c.Cell(&runs[i], now))
				}
			}
		}
	}
}

func TestListFits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cell := rapid.StringOfN(rapid.RuneFrom([]rune("abc 界🙂é́-")), 0, 60, -1)
		name := rapid.StringMatching(`[a-z][a-z0-9]{1,39}`)
		runs := []api.Run{}
		for range rapid.IntRange(0, 5).Draw(t, "runs") {
			runs = append(runs, api.Run{
				Handle: name.Draw(t, "handle"), Name: name.Draw(t, "name"), Status: rapid.SampledFrom(agency.Labels()).Draw(t, "status"),
				Summary: cell.Draw(t, "summary"), Runner: "shell", CreatedAt: noon,
			})
		}
		width := rapid.IntRange(43, 240).Draw(t, "width")
		table := command.NewTable(runs, noon)
		table.Fit(width, rapid.Bool().Draw(t, "repos"))
		for line := range strings.Lines(table.Text(false)) {
			if n := term.Width(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("%q has %d of %d columns", line, n, width)
			}
		}
	})
}
