package scheduler_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"agency"
	"agency/internal/scheduler"
)

func settledSession() (*agency.Session, []agency.SessionAgent, map[string]agency.AgentResult) {
	start := time.Date(2026, 2, 1, 14, 30, 22, 0, time.UTC)
	s := &agency.Session{
		ID: "20260201-143022-abc12345", Name: "auth", Status: agency.SessionFailed, SourceFile: "plans/auth.yaml", Repo: agency.Repo{Root: "/src/my_app"},
		StartedAt: start, CompletedAt: new(start.Add(10 * time.Minute)), Counts: agency.Counts{Total: 3, Complete: 1, Failed: 1, Cancelled: 1},
	}
	agents := []agency.SessionAgent{
		{ID: "001", Name: "plan", Wave: 1, Status: agency.AgentComplete, StartedAt: new(start), CompletedAt: new(start.Add(90 * time.Second)), Run: "r_1", Attempt: 1},
		{ID: "002", Name: "build", Wave: 1, Status: agency.AgentFailed, StartedAt: new(start), CompletedAt: new(start.Add(time.Hour)), Run: "r_2", Attempt: 3, Error: "exit status 1 | <b>bold</b>"},
		{ID: "003", Name: "review", Wave: 2, Status: agency.AgentCancelled, Error: "dependency 002 failed"},
	}
	results := map[string]agency.AgentResult{
		"001": {Branch: "agency/x/001", Commits: 2, Files: 3, Added: 40, Deleted: 7, Dirty: true, Nested: []string{"vendor/x_y"}, Tests: "run\n```\nmake test\n```\x1b[31m", Usage: agency.Usage{InputTokens: new(int64(8000)), OutputTokens: new(int64(900)), CostUSD: new(0.25)}},
		"002": {Branch: "agency/x/002", Problem: "the worktree is gone"},
	}
	return s, agents, results
}

func TestReport(t *testing.T) {
	t.Parallel()
	want := `# auth: failed

|  |  |
| --- | --- |
| session | ` + "`20260201-143022-abc12345`" + ` |
| repository | /src/my\_app |
| plan | plans/auth.yaml |
| agents | 1 complete, 1 failed, 1 cancelled |
| started | 2026-02-01T14:30:22Z |
| ended | 2026-02-01T14:40:22Z |
| took | 10m |

## Agents

| agent | name | wave | status | took | attempts | commits | files | lines | tokens | cost | branch |
| --- | --- | --: | --- | --: | --: | --: | --: | --: | --: | --: | --- |
| ` + "`001`" + ` | plan | 1 | complete | 1m30s | 1 | 2 and uncommitted | 3 | +40 -7 | 8000 in, 900 out | $0.25 | agency/x/001 |
| ` + "`002`" + ` | build | 1 | failed | 1h | 3 |  |  |  |  |  | agency/x/002 |
| ` + "`003`" + ` | review | 2 | cancelled |  |  |  |  |  |  |  |  |

## Not well

- ` + "`001`" + `: other repositories, not in its result: vendor/x\_y
- ` + "`002`" + ` failed: exit status 1 \| \<b\>bold\</b\>
- ` + "`002`" + ` has no result to count: the worktree is gone
- ` + "`003`" + ` cancelled: dependency 002 failed

## How to test

In the words of the agents; agency has not checked them.

` + "`001`:\n\n````text\nrun\n```\nmake test\n```[31m\n````\n"
	s, agents, results := settledSession()
	if diff := cmp.Diff(want, string(scheduler.Report(s, agents, results))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// meaning matches characters that Markdown would interpret.
var meaning = regexp.MustCompile(`(^|[^\\])([<>\[\]@!]|www\.|://)`)

// No text of an agent adds a row, heading, tag or link to the report.
func TestReportIsSafe(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringOfN(rapid.RuneFrom([]rune("`|#<>[]()!*_\n\r\t\x1b\u202e\\~ah:/w.@-")), 0, 80, -1))
		s, agents, results := settledSession()
		s.Name, agents[1].Name, agents[1].Error = text.Draw(t, "title"), text.Draw(t, "name"), text.Draw(t, "error")
		r := results["001"]
		r.Tests = text.Draw(t, "tests")
		results["001"] = r
		got := scheduler.Report(s, agents, results)
		if !bytes.Equal(got, scheduler.Report(s, agents, results)) {
			t.Error("it is not the same twice")
		}
		fence, rows, headings := "", 0, 0
		for line := range strings.Lines(string(got)) {
			line = strings.TrimSuffix(line, "\n")
			switch {
			case fence == "" && strings.HasPrefix(line, "```"):
				fence = strings.TrimSuffix(line, "text")
			case fence != "" && line == fence:
				fence = ""
			case fence != "":
			default:
				if means := meaning.FindString(strings.ReplaceAll(line, `\\`, "")); means != "" {
					t.Fatalf("%q means something in %q", means, line)
				}
				if strings.HasPrefix(line, "|") {
					rows++
				}
				if strings.HasPrefix(line, "#") {
					headings++
				}
			}
		}
		if fence != "" || rows != 14 || headings < 3 || headings > 4 {
			t.Errorf("%d rows, %d headings, fence %q:\n%s", rows, headings, fence, got)
		}
		if strings.ContainsAny(string(got), "\x1b\r\u202e") {
			t.Errorf("control characters in %q", got)
		}
	})
}
