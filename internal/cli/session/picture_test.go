package session_test

import (
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/clitest"
	"agency/internal/cli/session"
	"agency/internal/cli/term"
)

func mixedSession() api.ShowSessionResponse {
	done, asks, works, waits := clitest.SomeAgent("001", 1, agency.AgentComplete), clitest.SomeAgent("002", 1, agency.AgentRunning), clitest.SomeAgent("003", 1, agency.AgentRunning), clitest.SomeAgent("004", 2, agency.AgentQueued)
	failed, off := clitest.SomeAgent("005", 1, agency.AgentFailed), clitest.SomeAgent("006", 2, agency.AgentCancelled)
	asks.Label, asks.NeedsUser, asks.Note = agency.NeedsInput, true, "Which\x1b[31m database?\nA or B"
	works.Label, works.Note = agency.Working, "runs the tests"
	waits.After, waits.WaitReason = []string{"001", "002"}, "after 001, 002"
	failed.Error, off.Error, off.StartedAt, off.RunID, off.Attempts = "exit status 1", "dependency 005 failed", nil, "", 0
	return clitest.SomeSession(agency.SessionRunning, done, asks, works, waits, failed, off)
}

// The picture of a session fits its terminal, and shows what the user must look at even on a small
// one.
func TestSessionPicture(t *testing.T) {
	t.Parallel()
	s := mixedSession()
	for width, want := range map[int]string{
		80: `auth  20260201-143022-abc12345
◐ running 12m00s  1 needs you, 1 failed, 1 running, 1 queued, 1 done, 1 cancell…
wave 1
  ✓ 001  does-001  complete     2m00s
  ◐ 002  does-002  needs input  11m00s  Which database? A or B
  ● 003  does-003  running      11m00s  runs the tests
  ✕ 005  does-005  failed       2m00s   exit status 1
wave 2
  ○ 004  does-004  queued               after 001, 002
  - 006  does-006  cancelled            dependency 005 failed
002 waits for you: agency attach run-002`,
		40: `auth  20260201-143022-abc12345
◐ running 12m00s  1 needs you, 1 failed…
wave 1
  ✓ 001  does-001  complete     2m00s
  ◐ 002  does-002  needs input  11m00s
  ● 003  does-003  running      11m00s
  ✕ 005  does-005  failed       2m00s
wave 2
  ○ 004  does-004  queued
  - 006  does-006  cancelled
002 waits for you: agency attach run-002`,
	} {
		got := strings.Join(session.Lines(&s, clitest.SessionStart.Add(12*time.Minute), width, 0), "\n")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d columns (-want +got)\n%s", width, diff)
		}
	}
	got := session.Lines(&s, clitest.SessionStart.Add(12*time.Minute), 80, 8)
	if want := []string{
		s.Session.Name + "  " + s.Session.Ref(), "◐ running 12m00s  1 needs you, 1 failed, 1 running, 1 queued, 1 done, 1 cancell…", "wave 1",
		"  ◐ 002  does-002  needs input  11m00s  Which database? A or B", "  ✕ 005  does-005  failed       2m00s   exit status 1",
		"  ● 003  does-003  running      11m00s  runs the tests", "… 1 queued, 1 done, 1 cancelled", "002 waits for you: agency attach run-002",
	}; cmp.Diff(sorted(want), sorted(got)) != "" {
		t.Errorf("8 rows: got\n%s", strings.Join(got, "\n"))
	}
}

func sorted(lines []string) map[string]bool {
	set := map[string]bool{}
	for _, line := range lines {
		set[line] = true
	}
	return set
}

// For any session and terminal, the picture fits, has no agent twice, and counts those that it
// omits.
func TestSessionPictureFits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("abc 界🙂é\x1b[\n\u202e-")), 0, 60, -1)
		agents := []api.SessionAgent{}
		for i := range rapid.IntRange(1, 60).Draw(t, "agents") {
			a := clitest.SomeAgent(fmt.Sprintf("%03d", i), rapid.IntRange(0, 4).Draw(t, "wave"), rapid.SampledFrom(agency.AgentStatuses()).Draw(t, "status"))
			a.Name, a.Note, a.Error = text.Draw(t, "name"), text.Draw(t, "note"), rapid.SampledFrom([]string{"", "boom"}).Draw(t, "error")
			a.Label = rapid.SampledFrom([]agency.Label{"", agency.Working, agency.NeedsInput, agency.Stalled}).Draw(t, "label")
			a.NeedsUser = a.Status == agency.AgentRunning && a.Label.NeedsUser()
			agents = append(agents, a)
		}
		s := clitest.SomeSession(agency.SessionRunning, agents...)
		width, rows := rapid.IntRange(20, 200).Draw(t, "room"), rapid.IntRange(1, 60).Draw(t, "rows")
		lines := session.Lines(&s, clitest.SessionStart.Add(time.Hour), width, rows)
		if len(lines) > rows {
			t.Fatalf("%d lines in %d rows:\n%s", len(lines), rows, strings.Join(lines, "\n"))
		}
		for _, line := range lines {
			if term.Width(line) > width || strings.ContainsAny(line, "\n\x1b\u202e") {
				t.Errorf("%q has %d columns of %d", line, term.Width(line), width)
			}
		}
		if all := session.Lines(&s, clitest.SessionStart.Add(time.Hour), 200, 0); len(all) < len(agents) {
			t.Errorf("%d lines for %d agents", len(all), len(agents))
		}
	})
}

func TestSessionShowText(t *testing.T) {
	t.Parallel()
	b := clitest.New(t)
	b.App.Now = func() time.Time { return clitest.SessionStart.Add(time.Hour) }
	s := mixedSession()
	s.Session.Paused, s.Session.PlanPath = "agent 005 failed", "/src/app/plan.yaml"
	s.Agents[0].Result = &agency.AgentResult{
		Commits: 2, Files: 3, Added: 120, Deleted: 7, Tests: "make\n\x1b[31mtest", Usage: agency.Usage{InputTokens: new(int64(81_000)), OutputTokens: new(int64(2_500)), CostUSD: new(0.5)},
	}
	s.Agents[4].Result = &agency.AgentResult{Dirty: true, Added: 1}
	s.Agents[5].Result = &agency.AgentResult{Problem: "no branch \x1b[31magency/x", Usage: agency.Usage{OutputTokens: new(int64(12))}}
	d := b.Serve(clitest.Always(s, nil))
	if exit := b.Run("session", "show"); exit != agency.ExitOK {
		t.Fatalf("exit %d: %s", exit, b.Err.String())
	}
	if !strings.Contains(string(d.Last), `"active"`) {
		t.Errorf("asked for %s", d.Last)
	}
	got := regexp.MustCompile(`(?m)^started: .*\n`).ReplaceAllString(b.Out.String(), "")
	want := `session:   20260201-143022-abc12345
name:      auth
status:    ◐ running 1h00m  1 needs you, 1 failed, 1 running, 1 queued, 1 done, 1 cancelled
paused:    agent 005 failed
repo:      /src/app
plan:      /src/app/plan.yaml
parallel:  3 at once
files:     /src/app/.agency/status/sessions/20260201-143022-abc12345

agents:
      AGENT  NAME      STATUS       TOOK    RUN      NOTE
  wave 1
    ✓ 001    does-001  complete     2m00s   run-001
    ◐ 002    does-002  needs input  59m00s  run-002  Which database? A or B
    ● 003    does-003  running      59m00s  run-003  runs the tests
    ✕ 005    does-005  failed       2m00s   run-005  exit status 1
  wave 2
    ○ 004    does-004  queued                        after 001, 002
    - 006    does-006  cancelled            run-006  dependency 005 failed

results:
  AGENT  STATUS       TOOK   TRIES  COMMITS  LINES    TOKENS  COST   LANDED  TESTS      BRANCH
  001    ✓ complete   2m00s  1      2        +120 -7  83k     $0.50  -       make test  agency/20260201-143022-abc12345/001
  005    ✕ failed     2m00s  1      0+       +1 -0    -       -      -       -          agency/20260201-143022-abc12345/005
  006    - cancelled  -      0      -        -        12      -      -       -          agency/20260201-143022-abc12345/006
  006 has no result to count: no branch agency/x
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// Into a pipe, watch writes a line for each change, and none for agents that stay queued; it
// outlives a daemon, and its exit status is that of the session.
func TestSessionWatchLines(t *testing.T) {
	t.Parallel()
	for status, exit := range map[agency.SessionStatus]int{
		agency.SessionComplete: agency.ExitOK, agency.SessionFailed: agency.ExitError, agency.SessionCancelled: agency.ExitConflict,
	} {
		b := clitest.New(t)
		b.App.Now = func() time.Time { return clitest.SessionStart.Add(10 * time.Minute).Local() }
		one, two := clitest.SomeAgent("001", 1, agency.AgentRunning), clitest.SomeAgent("002", 2, agency.AgentQueued)
		oneDone, asks, twoDone := clitest.SomeAgent("001", 1, agency.AgentComplete), clitest.SomeAgent("002", 2, agency.AgentRunning), clitest.SomeAgent("002", 2, agency.AgentComplete)
		asks.Label, asks.NeedsUser, asks.Note = agency.NeedsInput, true, "A or B?"
		life := []api.ShowSessionResponse{
			clitest.SomeSession(agency.SessionRunning, one, two), clitest.SomeSession(agency.SessionRunning, oneDone, two),
			clitest.SomeSession(agency.SessionRunning, oneDone, asks), clitest.SomeSession(status, oneDone, twoDone),
		}
		var shown atomic.Int64
		b.Serve(func(op string, _ []byte) (any, error) {
			switch op {
			case api.ListEvents.Name:
				return api.ListEventsResponse{Events: []agency.Event{}, LastSeq: 6}, nil
			case api.ShowSession.Name:
				return life[min(shown.Add(1)-1, int64(len(life)-1))], nil
			default:
				return sessionEvent, nil // the stream is cut off here
			}
		})
		if got := b.Run("session", "watch"); got != exit {
			t.Errorf("%s: exit %d, err %q", status, got, b.Err.String())
		}
		mark := map[agency.SessionStatus]string{agency.SessionComplete: "✓", agency.SessionFailed: "✕", agency.SessionCancelled: "-"}[status]
		want := `20260201-143022-abc12345 auth  ● running 10m00s  1 running, 1 queued
● 001 does-001  running
✓ 001 does-001  complete after 2m00s
◐ 002 does-002  needs input  A or B?
✓ 002 does-002  complete after 2m00s
20260201-143022-abc12345 auth  ` + mark + " " + string(status) + ` 10m00s  2 done
report: /src/app/.agency/status/sessions/20260201-143022-abc12345/report.md
`
		if diff := cmp.Diff(want, regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d  `).ReplaceAllString(b.Out.String(), "")); diff != "" {
			t.Errorf("%s (-want +got)\n%s", status, diff)
		}
	}
}

// sessionEvent is an event of someSession, with events of others around it.
const sessionEvent = `id: 7
data: {"seq":7,"type":"session.agent","data":{"session":"20260201-143022-abc12345","agent":"001"}}

id: 8
data: {"seq":8,"type":"session.agent","data":{"session":"20260201-143023-00000000","agent":"001"}}

id: 9
data: {"seq":9,"type":"attempt.started","run_id":"r_other","data":{}}

`

// A client that follows a session looks again after each event of the session or of its runs,
// including later runs, and after no other event.
func TestSessionEvents(t *testing.T) {
	t.Parallel()
	const ours, other = `{"session":"20260201-143022-abc12345","run":"r_2"}`, `{"session":"20260201-143023-00000000","run":"r_3"}`
	runs := map[agency.RunID]bool{"r_1": true}
	for i, c := range []struct {
		run  agency.RunID
		data string
		want bool
	}{
		{"r_1", `{}`, true},
		{"r_2", `{}`, false},
		{"", ours, true},
		{"r_2", `{}`, true},
		{"", other, false},
		{"r_3", `{}`, false},
		{"", `[]`, false},
		{"", ``, false},
	} {
		if got := session.Concerns(&agency.Event{RunID: c.run, Data: []byte(c.data)}, "20260201-143022-abc12345", runs); got != c.want {
			t.Errorf("event %d: %v", i, got)
		}
	}
}

// The last line of a wait and its exit status describe the end of the session.
func TestSessionWaitEnds(t *testing.T) {
	t.Parallel()
	complete, failed, off := clitest.SomeAgent("001", 1, agency.AgentComplete), clitest.SomeAgent("002", 1, agency.AgentFailed), clitest.SomeAgent("003", 2, agency.AgentCancelled)
	off.Error, failed.Error = "stopped\x1b[31m by hand", "exit 1"
	asks, stuck := clitest.SomeAgent("004", 1, agency.AgentRunning), clitest.SomeAgent("005", 1, agency.AgentQueued)
	asks.Label, asks.NeedsUser, asks.Note = agency.NeedsInput, true, "A or B?"
	stuck.Error, stuck.NeedsUser = "waiting: conflict", true
	paused, byHand := clitest.SomeSession(agency.SessionRunning, complete), clitest.SomeSession(agency.SessionRunning, complete)
	paused.Session.Paused, byHand.Session.Paused = "agent 002 failed", agency.PausedByHand
	for name, c := range map[string]struct {
		s    api.ShowSessionResponse
		exit int
		says string
	}{
		"complete":          {clitest.SomeSession(agency.SessionComplete, complete), agency.ExitOK, "is complete: 1 complete\n"},
		"failed":            {clitest.SomeSession(agency.SessionFailed, complete, failed, off), agency.ExitError, "is failed: 1 complete, 1 failed, 1 cancelled; 002: exit 1\n"},
		"cancelled":         {clitest.SomeSession(agency.SessionCancelled, complete, off), agency.ExitConflict, "is cancelled: 1 complete, 1 cancelled\n"},
		"complete in parts": {clitest.SomeSession(agency.SessionComplete, complete, off), agency.ExitConflict, "is complete: 1 complete, 1 cancelled; 003: stopped by hand\n"},
		"nothing done":      {clitest.SomeSession(agency.SessionComplete, off), agency.ExitConflict, "is complete: 1 cancelled; 003: stopped by hand\n"},
		"asks":              {clitest.SomeSession(agency.SessionRunning, complete, asks), agency.ExitNeedsUser, "needs you: agent 004 needs input: A or B?\n"},
		"cannot start":      {clitest.SomeSession(agency.SessionRunning, complete, stuck), agency.ExitNeedsUser, "needs you: agent 005 is waiting: conflict\n"},
		"paused":            {paused, agency.ExitNeedsUser, "needs you: it is paused: agent 002 failed\n"},
		"paused by hand":    {byHand, agency.ExitNeedsUser, "needs you: it was paused by hand\n"},
		"late":              {clitest.SomeSession(agency.SessionRunning, complete), agency.CodeWaitTimeout.Exit(), "1h passed and session 20260201-143022-abc12345 has not settled"},
	} {
		b := clitest.New(t)
		b.Serve(clitest.Always(c.s, nil))
		exit := b.Run("session", "wait", "latest", "--attention", "--timeout", "1h")
		if said := b.Out.String() + b.Err.String(); exit != c.exit || !strings.Contains(said, c.says) {
			t.Errorf("%s: exit %d, %q", name, exit, said)
		}
	}
}

// An error of a command without --repo does not suggest --repo.
func TestSessionsOutsideOfRepositories(t *testing.T) {
	t.Parallel()
	b := clitest.New(t)
	b.Serve(clitest.Always(nil, agency.Errorf(agency.CodeNotGitRepo, "/x is not in a git repository").WithHint("name a folder of a repository with --repo, or make one: git init")))
	if b.Run("session", "start", "plan.yaml"); !strings.Contains(b.Err.String(), "hint: cd into a repository, or make one: git init\n") {
		t.Errorf("session start: %s", b.Err.String())
	}
	if b.Run("run", "--name", "x", "--prompt", "x"); !strings.Contains(b.Err.String(), "--repo") {
		t.Errorf("run: %s", b.Err.String())
	}
}

func TestSessionLogs(t *testing.T) {
	t.Parallel()
	b := clitest.New(t)
	undone := clitest.SomeAgent("004", 2, agency.AgentFailed)
	undone.Run, undone.Error = "", "runner was not found"
	s := clitest.SomeSession(agency.SessionFailed, clitest.SomeAgent("001", 1, agency.AgentComplete), clitest.SomeAgent("long-one", 1, agency.AgentFailed), clitest.SomeAgent("003", 2, agency.AgentQueued))
	answer := func(op string, _ []byte) (any, error) {
		switch op {
		case api.ListEvents.Name:
			return api.ListEventsResponse{Events: []agency.Event{}, LastSeq: 6}, nil
		case api.ShowSession.Name:
			return s, nil
		default:
			return "one\r\n\x1b[31mtwo\x1b[2J\nthree", nil
		}
	}
	b.Serve(answer)
	if exit := b.Run("session", "logs", "latest"); exit != agency.ExitOK {
		t.Fatalf("exit %d: %s", exit, b.Err.String())
	}
	want := "001      | one\n001      | two\n001      | three\nlong-one | one\nlong-one | two\nlong-one | three\n"
	if diff := cmp.Diff(want, b.Out.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if exit := b.Run("session", "logs", "latest", "001"); exit != agency.ExitOK || b.Out.String() != "one\r\n\x1b[31mtwo\x1b[2J\nthree" {
		t.Errorf("one agent, into a file: exit %d, %q", exit, b.Out.String())
	}
	if exit := b.Run("session", "logs", "latest", "long-on"); exit != agency.ExitNotFound || !strings.Contains(b.Err.String(), "did you mean long-one?") {
		t.Errorf("no agent: exit %d, %q", exit, b.Err.String())
	}
	if exit := b.Run("session", "logs", "latest", "003"); exit != agency.ExitConflict || !strings.Contains(b.Err.String(), "to wait for it: agency session logs "+s.Session.Ref()+" 003 -f") {
		t.Errorf("not begun: exit %d, %q", exit, b.Err.String())
	}
	starts := clitest.SomeAgent("005", 2, agency.AgentRunning)
	starts.Run = "" // not made yet when the daemon answered; its log is there a moment later
	s.Agents = append(s.Agents, starts, undone)
	if exit := b.Run("session", "logs", "latest", "005", "-f"); exit != agency.ExitOK || b.Out.Len() == 0 {
		t.Errorf("begins: exit %d, %q%q", exit, b.Out.String(), b.Err.String())
	}
	if exit := b.Run("session", "logs", "latest", "004"); exit != agency.ExitConflict || !strings.Contains(b.Err.String(), "004 never started: runner was not found") {
		t.Errorf("never started: exit %d, %q", exit, b.Err.String())
	}
}
