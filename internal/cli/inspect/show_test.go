package inspect_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/clitest"
)

// The diff of a run without changes has no files to line up.
func TestDiffOfNothing(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"diff", "fix-login"}, {"diff", "--stat", "fix-login"}} {
		b := clitest.New(t)
		b.Serve(clitest.Always(api.DiffRunResponse{}, nil))
		if exit := b.Run(args...); exit != agency.ExitOK || b.Out.Len() > 0 {
			t.Errorf("%q: exit %d, out %q, err %q", args, exit, b.Out.String(), b.Err.String())
		}
	}
}

func TestExplainText(t *testing.T) {
	t.Parallel()
	b := clitest.New(t)
	r := clitest.SomeRun("fix-login", agency.NeedsInput, "may it use Bash?")
	r.Sandbox = agency.SandboxWorktree
	at := time.Date(2026, 11, 22, 9, 0, 0, 0, time.Local)
	b.Serve(clitest.Always(api.ExplainRunResponse{
		Run: r,
		Explanation: agency.Explanation{
			Status: agency.Status{Label: agency.NeedsInput, Summary: "may it \x1b[31muse Bash?", Decided: "hook"}, Rule: 7, When: "it asks",
			Findings: []agency.Finding{
				{Source: "hook", Trust: agency.TrustAgent, Confidence: 1, At: at, AgeMS: 300_000, Attempt: 1, Says: "asks for a permission\nto \x1b]0;x\x07use Bash", Decided: true},
				{Source: "contract", Trust: agency.TrustSelfReport, Confidence: 1, Attempt: 1, Says: "unreadable", Ignored: "invalid: questions must be a list of texts"},
				{Source: "screen", Trust: agency.TrustScreen, Confidence: 0.6, At: at, AgeMS: 1000, Attempt: 1, Says: "3 signs"},
			},
			Unknown: []agency.UnknownEvent{{Name: "New\x1b[2J", Count: 2}},
		},
		Newest: []api.EvidenceLine{{At: at, Source: agency.FromHook, Signal: agency.SignalAsked, Event: "PermissionRequest", Tool: "Bash", Text: "make\nall"}},
	}, nil))
	if exit := b.Run("explain", "fix-login"); exit != agency.ExitOK {
		t.Fatalf("exit %d: %s", exit, b.Err.String())
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
	if diff := cmp.Diff(want, b.Out.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// show prints what an agent waits for and what it has used; an unknown value is a dash.
func TestShowText(t *testing.T) {
	t.Parallel()
	b := clitest.New(t)
	r := clitest.SomeRun("fix-login", agency.NeedsInput, "may it use Bash?")
	r.Request = &agency.Request{Kind: agency.AsksPermission, Tool: "Bash", Text: "rm -r\nbuild", At: time.Now().Add(-5 * time.Minute), Confidence: 1}
	r.Usage = agency.Usage{InputTokens: new(int64(1200)), CostUSD: new(0.5)}
	r.Conversation, r.StallAfterMS = "c-1", 90_000
	contract := agency.NewContract(time.Now())
	contract.Status, contract.Summary, contract.Questions = agency.ReportedNeedsInput, "Implementing OAuth but need clarification", []string{"Which provider?", "Persist?"}
	b.Serve(clitest.Always(api.ShowRunResponse{
		Run: r, Requests: []agency.Request{*r.Request, {Kind: agency.AsksQuestion, Text: "Which?", Subagent: "a1", At: time.Now(), Confidence: 1}},
		Contract: &contract, StatusAt: time.Now().Add(-5 * time.Minute), Attempts: []agency.Attempt{{Number: 1, State: agency.Running}},
		Git: &agency.GitFacts{Branch: r.Branch, Dirty: true, Changed: 2, Untracked: 1, Ahead: 3},
	}, nil))
	if exit := b.Run("show", "fix-login"); exit != agency.ExitOK {
		t.Fatalf("exit %d: %s", exit, b.Err.String())
	}
	for _, want := range []string{
		"conversation: c-1\n", "used:         1200 tokens in, - cached, - out, cost $0.50\n", "stalled:      after 1m without a sign\n",
		"\nrequest:\n  asks for: permission\n  since: 5m ago\n  tool: Bash\n  text: rm -r build\n",
		"\nbehind it:\n  asks for: question\n  since: 0s ago\n  text: Which?\n  for: a1\n",
		"\nrunner_status:\n  status: needs_input\n  updated: 5m ago\n  summary: Implementing OAuth but need clarification\n" +
			"  questions:\n    - Which provider?\n    - Persist?\n",
		"\ngit: not committed: 2 changed, 1 untracked, 3 ahead, 0 behind its base\n",
	} {
		if !strings.Contains(b.Out.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.Out.String())
		}
	}
}
