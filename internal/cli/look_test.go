package cli_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"agency"
	"agency/internal/api"
	"agency/internal/cli"
	"agency/internal/cli/term"
)

// A table of runs that is too wide gives up the end of the handle first, and nothing while there is room.
func TestSqueeze(t *testing.T) {
	t.Parallel()
	table := func() [][]string {
		return [][]string{
			{"RUN_ID", "NAME", "STATUS", "SUMMARY", "PR"},
			{"1122-fix-the-login-test-a1b2", "fix-login-test", "◐ ready for review", "Which OAuth 界界 library should I use for…", "#123"},
		}
	}
	for room, want := range map[int]string{
		120: "1122-fix-the-login-test-a1b2  fix-login-test  ◐ ready for review  Which OAuth 界界 library should I use for…  #123",
		100: "1122-fix-the-…  fix-login-test  ◐ ready for review  Which OAuth 界界 library should I use for…  #123",
		80:  "1122-fix-the-…  fix-login-t…  ◐ ready for review  Which OAuth 界界 librar…  #123",
		60:  "1122-fix-…  fix-login-t…  ◐ ready for review  Which O…  #123",
	} {
		rows := table()
		cli.Squeeze(rows, room)
		got := strings.Split(term.PaintedTable(rows, -1, func(_ int, s string) string { return s }), "\n")[1]
		if got != want || term.Width(got) > room {
			t.Errorf("%d columns: got %q of %d, want %q", room, got, term.Width(got), want)
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
		cli.Squeeze(rows, 80)
		for line := range strings.Lines(term.PaintedTable(rows, -1, func(_ int, s string) string { return s })) {
			if n := term.Width(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("%q has %d columns", line, n)
			}
		}
	})
}

// A run that changed nothing has no files to line up.
func TestDiffOfNothing(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"diff", "fix-login"}, {"diff", "--stat", "fix-login"}} {
		b := newBench(t)
		b.serve(always(api.DiffRunResponse{}, nil))
		if exit := b.run(args...); exit != agency.ExitOK || b.out.Len() > 0 {
			t.Errorf("%q: exit %d, out %q, err %q", args, exit, b.out.String(), b.err.String())
		}
	}
}

// All that is open is acknowledged once; what was over meanwhile needs nobody.
func TestAckAll(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	at := time.Now()
	var acked []string
	b.serve(func(op string, body []byte) (any, error) {
		if op == api.ListAlerts.Name {
			return api.ListAlertsResponse{Alerts: []api.Alert{{ID: "a_1"}, {ID: "a_2", AckedAt: &at}, {ID: "a_3"}, {ID: "a_4"}}}, nil
		}
		var req api.AckAlertRequest
		if err := json.Unmarshal(body, &req); err != nil {
			return nil, err
		}
		if acked = append(acked, req.Alerts...); req.Alerts[0] == "a_3" {
			return nil, agency.Errorf(agency.CodeInvalidState, "the alert a_3 is over")
		}
		return api.AlertsResponse{Alerts: []api.Alert{{ID: req.Alerts[0]}}}, nil
	})
	if exit := b.run("alerts", "ack", "--all"); exit != agency.ExitOK || b.out.String() != "acknowledged 2 alerts\n" {
		t.Errorf("exit %d, out %q, err %q", exit, b.out.String(), b.err.String())
	}
	if diff := cmp.Diff([]string{"a_1", "a_3", "a_4"}, acked); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, args := range [][]string{{"a_1", "--all"}, {"--all-repos", "a_1"}, {}} {
		if exit := b.run(append([]string{"alerts", "ack"}, args...)...); exit != agency.ExitUsage {
			t.Errorf("%q: exit %d", args, exit)
		}
	}
}

// What stays goes on with the next daemon: everything is shown once, and what changed while nobody was there, too.
func TestDaemonGoesAway(t *testing.T) {
	t.Parallel()
	event := func(seq int64) string {
		return fmt.Sprintf("id: %d\ndata: {\"seq\":%d,\"type\":\"alert.opened\",\"run_id\":\"r_01\",\"run\":\"fix\",\"data\":{\"alert\":\"a_%d\"}}\n\n", seq, seq, seq)
	}
	for want, args := range map[string][]string{
		"7 8 9":    {"events", "-f", "--since", "6"},
		"a7 a8 a9": {"alerts", "-f"},
		"s0 s1 s2": {"ls", "--watch"},
	} {
		b := newBench(t)
		var streams, listed atomic.Int64
		listed.Store(-1)
		b.serve(func(op string, _ []byte) (any, error) {
			n := streams.Load()
			switch op {
			case strings.TrimPrefix(api.EventsPath, "/v1/"):
				for args[0] == "ls" && listed.Load() != n && t.Context().Err() == nil { // the list is shown as it stands now
					time.Sleep(time.Millisecond)
				}
				if streams.Add(1); n == 3 {
					return nil, agency.Errorf(agency.CodeRunNotFound, "enough")
				}
				return event(7 + n), nil // and there it is cut off
			case api.ListEvents.Name:
				return api.ListEventsResponse{Events: []agency.Event{}, LastSeq: 6}, nil
			case api.ListAlerts.Name:
				resp := api.ListAlertsResponse{Alerts: []api.Alert{}}
				for i := range n {
					resp.Alerts = append(resp.Alerts, api.Alert{ID: fmt.Sprintf("a_%d", 7+i), RunName: fmt.Sprintf("a%d", 7+i), Kind: agency.AlertLost})
				}
				return resp, nil
			default:
				listed.Store(n)
				return api.ListRunsResponse{Runs: []api.Run{someRun("fix", agency.Working, fmt.Sprintf("s%d", n))}}, nil
			}
		})
		if exit := b.run(args...); exit != agency.ExitNotFound {
			t.Errorf("%q: exit %d, err %q", args, exit, b.err.String())
		}
		at := 0
		for word := range strings.FieldsSeq(want) {
			i := strings.Index(b.out.String()[at:], word)
			if i < 0 || strings.Count(b.out.String(), word+" ") > 1 {
				t.Fatalf("%q: %q is not there once:\n%s", args, word, b.out.String())
			}
			at += i
		}
	}
}

func TestExplainText(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := someRun("fix-login", agency.NeedsInput, "may it use Bash?")
	at := time.Date(2026, 11, 22, 9, 0, 0, 0, time.Local)
	b.serve(always(api.ExplainRunResponse{
		Run: r,
		Explanation: agency.Explanation{
			Status: agency.Status{Label: agency.NeedsInput, Summary: "may it \x1b[31muse Bash?", Decided: "hook"}, Rule: 7, When: "it asks",
			Clues: []agency.Clue{
				{Source: "hook", Trust: agency.TrustAgent, Confidence: 1, At: at, AgeMS: 300_000, Attempt: 1, Says: "asks for a permission\nto \x1b]0;x\x07use Bash", Decided: true},
				{Source: "contract", Trust: agency.TrustSelfReport, Confidence: 1, Attempt: 1, Says: "unreadable", Ignored: "invalid: questions must be a list of texts"},
				{Source: "screen", Trust: agency.TrustScreen, Confidence: 0.6, At: at, AgeMS: 1000, Attempt: 1, Says: "3 signs"},
			},
			Unknown: []agency.UnknownEvent{{Name: "New\x1b[2J", Count: 2}},
		},
		Newest: []api.EvidenceLine{{At: at, Source: agency.FromHook, Sign: agency.SignAsked, Event: "PermissionRequest", Tool: "Bash", Text: "make\nall"}},
	}, nil))
	if exit := b.run("explain", "fix-login"); exit != agency.ExitOK {
		t.Fatalf("exit %d: %s", exit, b.err.String())
	}
	want := `run:     fix-login
status:  ◐ needs input  may it use Bash?
rule:    7  it asks

evidence:
     SOURCE    TRUST      AGE  SAYS
  *  hook      agent      5m   asks for a permission to use Bash
     contract  word       -    unreadable
       ignored: invalid: questions must be a list of texts
     screen    looks 60%  1s   3 signs

unknown to this version:
  New, 2 times

newest:
  09:00:00  hook asked PermissionRequest Bash make all
`
	if diff := cmp.Diff(want, b.out.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// What an agent waits for and what it has used stand in show; what is unknown is a dash.
func TestShowText(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := someRun("fix-login", agency.NeedsInput, "may it use Bash?")
	r.Request = &agency.Request{Kind: agency.AsksPermission, Tool: "Bash", Text: "rm -r\nbuild", At: time.Now().Add(-5 * time.Minute), Confidence: 1}
	r.Usage = agency.Usage{InputTokens: new(int64(1200)), CostUSD: new(0.5)}
	r.Conversation, r.StallAfterMS = "c-1", 90_000
	contract := agency.NewContract(time.Now())
	contract.Status, contract.Summary, contract.Questions = agency.SaysNeedsInput, "Implementing OAuth but need clarification", []string{"Which provider?", "Persist?"}
	b.serve(always(api.ShowRunResponse{
		Run: r, Requests: []agency.Request{*r.Request, {Kind: agency.AsksQuestion, Text: "Which?", Subagent: "a1", At: time.Now(), Confidence: 1}},
		Contract: &contract, Word: time.Now().Add(-5 * time.Minute), Attempts: []agency.Attempt{{Number: 1, State: agency.Running}},
		Git: &agency.GitFacts{Branch: r.Branch, Dirty: true, Changed: 2, Untracked: 1, Ahead: 3},
	}, nil))
	if exit := b.run("show", "fix-login"); exit != agency.ExitOK {
		t.Fatalf("exit %d: %s", exit, b.err.String())
	}
	for _, want := range []string{
		"conversation: c-1\n", "used:         1200 tokens in, - cached, - out, cost $0.50\n", "stalled:      after 1m without a sign\n",
		"\nrequest:\n  asks for: permission\n  since: 5m ago\n  tool: Bash\n  text: rm -r build\n",
		"\nbehind it:\n  asks for: question\n  since: 0s ago\n  text: Which?\n  for: a1\n",
		"\nrunner_status:\n  status: needs_input\n  updated: 5m ago\n  summary: Implementing OAuth but need clarification\n" +
			"  questions:\n    - Which provider?\n    - Persist?\n",
		"\ngit: 2 changed, 1 untracked, 3 ahead, 0 behind its base\n",
	} {
		if !strings.Contains(b.out.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.out.String())
		}
	}
}

func TestHelpOnNothing(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		hint string
		exit int
	}{
		{[]string{"help", "shw"}, "did you mean: agency show", agency.ExitUsage},
		{[]string{"help", "photosynthesis"}, "agency --help", agency.ExitUsage},
		{[]string{"help", "daemon", "strat"}, "did you mean: agency daemon start", agency.ExitUsage},
		{[]string{"help", "daemon", "start"}, "", agency.ExitOK},
		{[]string{"help"}, "", agency.ExitOK},
	} {
		b := newBench(t)
		if exit := b.run(test.args...); exit != test.exit || !strings.Contains(b.err.String(), test.hint) {
			t.Errorf("%q: exit %d, %q", test.args, exit, b.err.String())
		}
	}
}
