package schedule_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/schedule"
)

// waitingAgents is a plan of which two agents run, one of them to be tried again in a minute, one
// is done and the others wait for various reasons.
func waitingAgents(now time.Time) (*agency.Plan, []agency.SessionAgent) {
	plan := &agency.Plan{MaxParallel: 3, Limits: map[string]int{"b": 1}, Agents: []agency.PlanAgent{
		{ID: "runs", Runner: "b"},
		{ID: "again", Runner: "c"},
		{ID: "held", Runner: "a"},
		{ID: "limited", Runner: "b"},
		{ID: "free", Runner: "c"},
		{ID: "next", Runner: "c"},
		{ID: "after", Runner: "c", After: []string{"done", "runs", "free"}},
		{ID: "done", Runner: "c"},
		{ID: "stuck", Runner: "c"},
	}}
	agents := make([]agency.SessionAgent, len(plan.Agents))
	for i := range agents {
		agents[i] = agency.SessionAgent{Position: i, ID: plan.Agents[i].ID, Status: agency.AgentQueued}
	}
	for _, i := range []int{0, 1} {
		agents[i].Status, agents[i].Run, agents[i].StartedAt = agency.AgentRunning, agency.RunID("r"+agents[i].ID), &now
	}
	agents[1].Attempt, agents[1].NotBefore, agents[1].Error = 1, new(now.Add(time.Minute)), "exit 1"
	agents[7].Status, agents[8].Error = agency.AgentComplete, "waiting: conflict in x"
	return plan, agents
}

// The reason that a session shows for an agent without an attempt is the reason why Decide begins
// none.
func TestWaits(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 2, 1, 14, 30, 22, 0, time.UTC)
	reset := now.Add(34 * time.Minute)
	clock := schedule.Clock{Now: now, Elapsed: now.Sub}
	plan, agents := waitingAgents(now)
	const full = "no free place, at most 3 at once"
	for name, test := range map[string]struct {
		change func(s *agency.Session, agents []agency.SessionAgent)
		want   []string
	}{
		"running": {nil, []string{
			"", "", "a is rate limited until 15:04", "no free place, at most 1 of b at once", "", "", "after runs, free", "", "",
		}},
		"its turn again": {func(_ *agency.Session, agents []agency.SessionAgent) { agents[1].NotBefore = nil }, []string{
			"", "", "a is rate limited until 15:04", "no free place, at most 1 of b at once", "", full, "after runs, free", "", "",
		}},
		"one at once": {func(s *agency.Session, agents []agency.SessionAgent) { s.MaxParallel, agents[1].NotBefore = 1, nil }, []string{
			"", "no free place, at most 1 at once", "a is rate limited until 15:04", "no free place, at most 1 at once", "no free place, at most 1 at once",
			"no free place, at most 1 at once", "after runs, free", "", "",
		}},
		"paused": {func(s *agency.Session, _ []agency.SessionAgent) { s.Paused = agency.PausedByHand }, []string{
			"", "", "a is rate limited until 15:04", "paused", "paused", "paused", "after runs, free", "", "",
		}},
		"cancelled": {func(s *agency.Session, _ []agency.SessionAgent) { s.CancelAt = &now }, make([]string, len(agents))},
	} {
		s := agency.Session{Status: agency.SessionRunning, MaxParallel: plan.MaxParallel}
		record := append([]agency.SessionAgent{}, agents...)
		if test.change != nil {
			test.change(&s, record)
		}
		state := schedule.NewState(s, plan, record, retry)
		state.SetFacts(0, schedule.RunFacts{Made: true, Attempt: 1, State: agency.Running})
		state.SetFacts(1, schedule.RunFacts{Made: true, Attempt: 1, State: agency.Failed})
		got := make([]string, len(record))
		for i, wait := range state.Waits(clock, map[string]time.Time{"a": reset, "c": now}) {
			got[i] = wait.Reason
			if i == 2 && name != "cancelled" && !wait.Until.Equal(reset) {
				t.Errorf("%s: the first attempt is to begin at %s", name, wait.Until)
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
		if name == "cancelled" {
			continue
		}
		actions, _ := schedule.Decide(state, clock, map[string]time.Time{"a": reset, "c": now})
		for _, x := range actions {
			if x.Kind == schedule.ActStart && got[x.Agent] != "" {
				t.Errorf("%s: %s starts and waits: %s", name, record[x.Agent].ID, got[x.Agent])
			}
		}
	}
}
