package cli_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/clitest"
	"agency/internal/cli/term"
)

var update = flag.Bool("update", false, "write the files in testdata")

// What people look at fits terminals of 60, 80, 120 and 200 columns: each screen is a golden file
// for each width, as the list of runs has them in internal/cli/command. go test ./internal/cli -run
// TestScreens -update writes the files.
func TestScreens(t *testing.T) {
	t.Parallel()
	for name, screen := range map[string]struct {
		args []string
		data any
	}{
		"show":         {[]string{"show", "login"}, shownRun()},
		"explain":      {[]string{"explain", "login"}, explainedRun()},
		"alerts":       {[]string{"alerts"}, openAlerts()},
		"session-show": {[]string{"session", "show"}, shownSession()},
		"session-ls":   {[]string{"session", "ls"}, listedSessions()},
		"queue-ls":     {[]string{"queue", "ls"}, queued()},
		"gc":           {[]string{"gc"}, collectable()},
		"doctor":       {[]string{"doctor"}, diagnosis()},
		"refused": {[]string{"show", "lgoin"}, agency.Errorf(agency.CodeRunAmbiguous,
			`"login" could be session 20260201-143022-abc12345, 20260201-150116-def67890 or 20260202-091544-fed09876`).WithHint("give the id")},
	} {
		b := clitest.New(t)
		b.App.Now = func() time.Time { return clitest.SessionStart.Add(time.Hour) }
		err, _ := screen.data.(*agency.Error)
		b.Serve(func(string, []byte) (any, error) {
			if err != nil {
				return nil, err
			}
			return screen.data, nil
		})
		for _, width := range []uint16{60, 80, 120, 200} {
			got := date.ReplaceAllString(b.Screen(width, screen.args...), "2026-02-01 15:04:05") // of any time zone
			for line := range strings.Lines(got) {
				if n := term.Width(strings.TrimSuffix(line, "\n")); n > int(width) {
					t.Errorf("%s at %d: %q has %d columns", name, width, line, n)
				}
			}
			golden(t, fmt.Sprintf("%s-%d.txt", name, width), got)
		}
	}
}

var date = regexp.MustCompile(`\d{4}(-\d\d){2} \d\d(:\d\d){2}`)

// golden compares a text with a file of testdata/screens.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "screens", name)
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

const longQuestion = "Which OAuth 界界 library should I use for the new login, the old one or the one of the shop?"

// at is so many minutes after the beginning of what the screens show.
func at(minutes int) *time.Time {
	return new(clitest.SessionStart.Add(time.Duration(minutes) * time.Minute))
}

func askingRun() api.Run {
	r := clitest.SomeRun("login", agency.NeedsInput, longQuestion)
	r.CreatedAt, r.BaseCommit, r.Sandbox = *at(10), "4dbe03b1f1b4c8b9", agency.SandboxWorktree
	return r
}

func shownRun() api.ShowRunResponse {
	return api.ShowRunResponse{
		Run: askingRun(), StatusAt: *at(20), Requests: []agency.Request{}, Connected: true, LastOutput: at(20),
		Contract: &agency.Contract{Status: agency.ReportedNeedsInput, Summary: longQuestion, Questions: []string{longQuestion, "And may it go?"}, HowToTest: "go test ./login"},
		Attempts: []agency.Attempt{{Number: 1, State: agency.Running, StartedAt: at(10)}},
		Git:      &agency.GitFacts{Branch: "agency/1122-fix-login-a1b2", Dirty: true, Changed: 3, Untracked: 1, Ahead: 2, Behind: 14},
		Checks:   []agency.CheckResult{},
	}
}

func explainedRun() api.ExplainRunResponse {
	return api.ExplainRunResponse{
		Run: askingRun(),
		Explanation: agency.Explanation{
			Status: agency.Status{Label: agency.NeedsInput, Summary: longQuestion, Decided: "contract"}, Rule: 8, When: "it asks for a permission or an answer, or reported needs_input; also after a clean exit",
			Findings: []agency.Finding{
				{Source: "process", Trust: agency.TrustKernel, Confidence: 1, At: *at(50), AgeMS: 600_000, Attempt: 1, Says: "alive, pid 4711"},
				{Source: "contract", Trust: agency.TrustSelfReport, Confidence: 1, At: *at(20), AgeMS: 2_400_000, Attempt: 1, Says: "needs_input: " + longQuestion, Decided: true},
			},
		},
	}
}

func openAlerts() api.ListAlertsResponse {
	alert := func(id, run string, kind agency.AlertKind, text string) api.Alert {
		payload, _ := json.Marshal(map[string]string{"text": text})
		return api.Alert{ID: "a_01JD4QJ5T0Y7R8V6W3N2" + id, RunID: "r_01JD4QJ5T0Y7R8V6W3N2M1K0HG", RunName: run, Kind: kind, Payload: payload, OpenedAt: *at(30)}
	}
	return api.ListAlertsResponse{Alerts: []api.Alert{
		alert("RVJFVT", "login", agency.AlertNeedsInput, longQuestion),
		alert("JF0KMG", "1122-rewrite-the-install-guide-c3d4", agency.AlertComplete, "The guide has one page for each system"),
		alert("KV958D", "flaky", agency.AlertError, "exit status 1"),
	}}
}

func shownSession() api.ShowSessionResponse {
	done, asks, failed := clitest.SomeAgent("api", 1, agency.AgentComplete), clitest.SomeAgent("ui", 2, agency.AgentRunning), clitest.SomeAgent("migrate-the-database", 1, agency.AgentFailed)
	waits := clitest.SomeAgent("docs", 3, agency.AgentQueued)
	asks.Label, asks.NeedsUser, asks.Note, asks.After = agency.NeedsInput, true, longQuestion, []string{"api"}
	waits.After, waits.WaitReason, failed.Error = []string{"ui"}, "after ui", "exit status 1"
	done.Result = &agency.AgentResult{Commits: 2, Files: 3, Added: 1204, Deleted: 88, Tests: "go test ./api", Usage: agency.Usage{InputTokens: new(int64(81_000)), CostUSD: new(0.5)}}
	failed.Result = &agency.AgentResult{Dirty: true, Added: 1}
	s := clitest.SomeSession(agency.SessionRunning, done, failed, asks, waits)
	s.Session.PlanPath = s.Session.Repo + "/plans/the-plan-of-the-new-login.yaml"
	return s
}

func listedSessions() api.ListSessionsResponse {
	one, two := clitest.SomeSession(agency.SessionRunning), clitest.SomeSession(agency.SessionFailed)
	two.Session.Name = "rewrite-the-installation-guide"
	return api.ListSessionsResponse{Sessions: []api.Session{one.Session, two.Session}}
}

func queued() api.QueueResponse {
	entry := func(run string, state agency.QueueState, position int, why string) api.QueueItem {
		return api.QueueItem{Entry: agency.QueueEntry{Run: run, Target: "main", State: state, ChangedAt: *at(40)}, Position: position, Why: why}
	}
	return api.QueueResponse{
		Entries: []api.QueueItem{
			entry("login", agency.EntryChecking, 1, "the check tests runs on it together with docs"),
			entry("docs", agency.EntryQueued, 2, "the ones before it are being checked"),
			entry("1122-rewrite-the-install-c3d4", agency.EntryHeld, 0, "its work changes what the checks run, and waits for an approval; look: agency review 1122-rewrite-the-install-c3d4"),
		},
		Queues: []agency.Queue{{Target: "main", Paused: true}},
	}
}

func collectable() api.CollectRunsResponse {
	return api.CollectRunsResponse{Runs: []api.CollectedRun{
		{Ref: "login", Status: agency.Merged, Repo: "/src/app", Removable: true, Reason: "removable", Bytes: 4_400_000},
		{Ref: "1122-rewrite-the-install-c3d4", Status: agency.LabelFailed, Repo: "/src/app", Reason: "not committed: 3 changed files, 1 untracked file", Bytes: 1_200_000},
	}}
}

func diagnosis() api.DoctorResponse {
	return api.DoctorResponse{Checks: []api.Check{
		{Name: "git", Level: "ok", Text: "2.47.1"},
		{Name: "runner codex", Level: "error", Text: "codex is not in PATH, and it is the default runner", Fix: "install it: npm install -g @openai/codex, or set its path: [runners.codex] exec"},
		{Name: "other runners", Level: "note", Text: "not installed: gemini, and nothing of your own is configured"},
		{Name: "orphans", Level: "warning", Text: "1 tmux session belongs to no run", Fix: "tmux kill-session -t agency_r_01JD4QJ5T0Y7R8V6W3N2M1K0HG"},
	}}
}
