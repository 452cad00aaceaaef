package status_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"agency"
	"agency/internal/status"
)

// An explanation agrees with the status, and names a basis unless nothing is known.
func TestExplainEveryExample(t *testing.T) {
	t.Parallel()
	numbers := map[agency.Label]status.Rule{}
	for _, rule := range status.Rules() {
		numbers[rule.Label] = rule
	}
	all := examples()
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SampledFrom(all).Draw(t, "example")
		e := status.Explain(x.facts(), now)
		if diff := cmp.Diff(x.derive(), e.Status); diff != "" {
			t.Errorf("(-Derive +Explain)\n%s", diff)
		}
		if rule := numbers[e.Status.Label]; e.Rule != rule.Number || e.When != rule.When {
			t.Errorf("%q by rule %d, %q", e.Status.Label, e.Rule, e.When)
		}
		decided := 0
		for _, c := range e.Findings {
			if c.Decided {
				decided++
				if c.Source != e.Status.Decided || c.Ignored != "" {
					t.Errorf("%+v decided %+v", c, e.Status)
				}
			}
			if c.Says == "" || c.Trust == "" || c.Source == "" || c.Confidence <= 0 || c.AgeMS < 0 || c.Attempt != 1 {
				t.Errorf("got %+v", c)
			}
		}
		if decided != 1 {
			t.Errorf("%d findings decided %+v: %+v", decided, e.Status, e.Findings)
		}
	})
}

// found returns the source, the mark, the words of each finding, and why it was ignored.
func found(findings []agency.Finding) []string {
	var lines []string
	for _, c := range findings {
		line := []string{string(c.Source)}
		if c.Decided {
			line = append(line, "*")
		}
		line = append(line, c.Says)
		if c.Ignored != "" {
			line[len(line)-1] += ": " + c.Ignored
		}
		lines = append(lines, strings.Join(line, " "))
	}
	return lines
}

func TestExplain(t *testing.T) {
	t.Parallel()
	asking := asksForALibrary()
	checkFindings(t, []explained{
		{"a question", agency.Run{Attempt: agency.Attempt{Number: 1, State: agency.Running, StartedAt: &begun, Reported: agency.Observed{Contract: &asking, At: now}}}, []string{
			"process alive",
			"contract * needs_input: Which library?",
			"clock nothing new for 0s; it is stalled after 15m",
		}},
		{"an answered question", agency.Run{Attempt: agency.Attempt{
			Number: 1, State: agency.Running, StartedAt: &begun, InputAt: at(2 * time.Minute), Reported: agency.Observed{Contract: &asking, At: begun},
		}}, []string{
			"process alive",
			"contract needs_input: Which library?: answered by a message 2m ago",
			"message * a message was sent to it",
			"clock nothing new for 2m; it is stalled after 15m",
		}},
		{"an invalid word", agency.Run{Attempt: agency.Attempt{
			Number: 2, State: agency.Running, StartedAt: at(time.Minute), Reported: agency.Observed{Problem: "questions must be a list of texts", At: *at(time.Second)},
			RunnerProcess: &agency.Process{PID: 12},
		}}, []string{
			"process * alive, pid 12",
			"contract unreadable: invalid: questions must be a list of texts",
			"clock nothing new for 1s; it is stalled after 15m",
			"process failed (exit 3): of attempt 1; attempt 2 is the newest",
		}},
	})
}

// An agent that continues in another mode rests, as agency knows without a word of the agent.
func TestExplainStartedWithoutAMessage(t *testing.T) {
	t.Parallel()
	checkFindings(t, []explained{
		{"in another mode", agency.Run{Attempt: agency.Attempt{
			Number: 1, State: agency.Running, Mode: agency.ModeTerminal, StartedAt: &begun, AgentState: agency.AgentState{Turn: agency.TurnEnded, TurnAt: begun},
		}}, []string{
			"process alive",
			"contract nothing: there is no status file",
			"record * it was started without a message",
			"clock nothing new for 1h; it is stalled after 15m",
		}},
	})
}

// What an agent says in its own protocol is its own word, and no reading of its terminal.
func TestExplainTrust(t *testing.T) {
	t.Parallel()
	for source, want := range map[agency.Source]agency.Trust{agency.FromProtocol: agency.TrustAgent, agency.FromHook: agency.TrustAgent, agency.FromScreen: agency.TrustScreen, "": agency.TrustRecord} {
		state := agency.AgentState{Turn: agency.TurnEnded, TurnBy: source, TurnAt: begun}
		run := agency.Run{Attempt: agency.Attempt{Number: 1, State: agency.Running, StartedAt: &begun, AgentState: state}}
		for _, c := range status.Explain(status.Facts{Run: &run}, now).Findings {
			if c.Decided && c.Trust != want {
				t.Errorf("%q: trust %q", source, c.Trust)
			}
		}
	}
}

// A state that comes first hides what the agent said and did, which is still in the explanation.
func TestExplainHidden(t *testing.T) {
	t.Parallel()
	asking := asksForALibrary()
	prompted := observed(agency.Evidence{Signal: agency.SignalPrompt}, agency.Evidence{Signal: agency.SignalToolStarted, Tool: "Edit"})
	checkFindings(t, []explained{
		{"a killed agent that asked", agency.Run{Flag: &agency.Flag{Reason: "budget", At: now}, Attempt: agency.Attempt{
			Number: 1, State: agency.Killed, EndedAt: at(time.Minute), Reported: agency.Observed{Contract: &asking, At: begun}, AgentState: prompted,
		}}, []string{
			"record * flagged: budget",
			"process stopped: rule 6 (needs attention) comes before rule 11 (stopped)",
			"contract needs_input: Which library?: the attempt is stopped",
			"hook at work, using Edit: the attempt is stopped",
			"hook 2 signals, the newest: tool_started",
		}},
		{"at work", agency.Run{StallAfterMS: 1000, Attempt: agency.Attempt{
			Number: 1, State: agency.Running, StartedAt: &begun, Reported: agency.Observed{Contract: &asking, At: begun.Add(-time.Second)}, AgentState: prompted,
		}}, []string{
			"process alive",
			"contract needs_input: Which library?: a new prompt was submitted 1h ago",
			"hook at work, using Edit: rule 12 (stalled) comes before rule 14 (working)",
			"clock * nothing new for 59m; it is stalled after 1s",
			"hook 2 signals, the newest: tool_started",
		}},
	})
}

func at(before time.Duration) *time.Time { return new(now.Add(-before)) }

// asksForALibrary returns the status file of an agent that asks a question.
func asksForALibrary() agency.Contract {
	asking := agency.NewContract(begun)
	asking.Status, asking.Questions = agency.ReportedNeedsInput, []string{"Which library?"}
	return asking
}

// explained is a run and the findings about it.
type explained struct {
	name string
	run  agency.Run
	want []string // source, mark, says and why it was ignored
}

// checkFindings checks what is found about each run.
func checkFindings(t *testing.T, runs []explained) {
	t.Helper()
	for _, tt := range runs {
		f := status.Facts{Run: &tt.run, StallThreshold: agency.StallThreshold}
		if tt.run.Attempt.Number > 1 {
			f.Earlier = []agency.Attempt{{Number: 1, State: agency.Failed, ExitCode: new(3), EndedAt: &begun}}
		}
		if diff := cmp.Diff(tt.want, found(status.Explain(f, now).Findings)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.name, diff)
		}
	}
}

func TestExplainNothing(t *testing.T) {
	t.Parallel()
	if e := status.Explain(status.Facts{}, now); e.Rule != 1 || e.Status.Label != agency.Broken || len(e.Findings) != 1 {
		t.Errorf("of nothing: %+v", e)
	}
}
