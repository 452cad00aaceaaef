package schedule_test

import (
	"testing"
	"time"

	"agency"
	"agency/internal/schedule"
)

// A container engine that is not up yet, after a reboot for instance, is not the agent's fault: the
// start is tried again without a retry, until its tries are used up.
func TestScheduleWaitsForTheContainerEngine(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 2, 1, 14, 30, 22, 0, time.UTC)
	clock := schedule.Clock{Now: now, Elapsed: now.Sub}
	plan := &agency.Plan{OnFailure: agency.StopOnFailure, Agents: []agency.PlanAgent{{ID: "one", Runner: "a", Retries: 0}}}
	session := agency.Session{Status: agency.SessionRunning, MaxParallel: 1}
	agent := agency.SessionAgent{ID: "one", Status: agency.AgentRunning, Run: "r1", StartedAt: &now}
	for try := range retry.Waits + 1 {
		d := schedule.NewState(session, plan, []agency.SessionAgent{agent}, retry)
		d.SetFacts(0, schedule.RunFacts{})
		x := d.Unstarted(0, agency.CodeSandboxUnavailable, "the engine is not running", clock)
		if want := try < retry.Waits; want != (x.Kind == schedule.ActRetry) {
			t.Fatalf("start %d was followed by %s: %s", try+1, x.Kind, x.Reason)
		}
		x.Apply(&session, &agent, "", now)
	}
	if agent.Status != agency.AgentFailed || agent.Tries != 0 {
		t.Errorf("the agent is %s after %d retries, want failed after none", agent.Status, agent.Tries)
	}
}
