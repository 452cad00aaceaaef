package sqlite_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agency"
)

// A session that takes an agent over keeps what is known of that agent's run, and of no other run.
func TestResultsAreInherited(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), setup(t)
	old := newSession(1)
	agents := newAgents(old, 3)
	for i := range agents {
		agents[i].Status, agents[i].Run = agency.AgentComplete, agency.RunID(fmt.Sprintf("r_%d", i))
	}
	createSession(t, s, old, agents)
	want := agency.AgentResult{Branch: "agency/x/001", Commits: 3, Added: 7, Tests: "make test", Usage: agency.Usage{CostUSD: new(0.5)}}
	for _, agent := range []string{"001", "002"} {
		if err := s.AddResult(ctx, old.ID, agent, &want); err != nil {
			t.Fatal(err)
		}
	}
	retry := newSession(2)
	retry.RetryOf = old.ID
	taken := newAgents(retry, 3)
	taken[0].Status, taken[0].Run = agency.AgentComplete, "r_0" // 002 begins anew; 003 is taken over, and has no result
	taken[2].Status, taken[2].Run = agency.AgentComplete, "r_2"
	createSession(t, s, retry, taken)
	if err := s.RemoveSession(ctx, old.ID); err == nil {
		t.Error("a running session was removed")
	}
	got, err := s.SessionResults(ctx, retry.ID)
	if diff := cmp.Diff(map[string]agency.AgentResult{"001": want}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

// One query returns the runs of a session, and only those that exist.
func TestSessionRuns(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), setup(t)
	runs := []*agency.Run{newRun(3), newRun(1), newRun(2)}
	create(t, s, runs...)
	session := newSession(1)
	agents := newAgents(session, 4)
	for i, status := range []agency.AgentStatus{agency.AgentRunning, agency.AgentComplete} {
		agents[i].Status, agents[i].Run = status, runs[i].ID
	}
	agents[2].Status, agents[2].Run = agency.AgentRunning, newRun(9).ID // its id is drawn, but the run does not exist yet
	createSession(t, s, session, agents)
	for running, want := range map[bool][]*agency.Run{false: runs[:2], true: runs[:1]} {
		got, err := s.SessionRuns(ctx, session.ID, running)
		if err != nil || len(got) != len(want) {
			t.Fatalf("running %v: %d runs, %v", running, len(got), err)
		}
		for _, r := range want {
			if diff := cmp.Diff(r, got[r.ID]); diff != "" {
				t.Errorf("running %v (-want +got)\n%s", running, diff)
			}
		}
	}
}

// BenchmarkSessionRuns reads the runs of a large session, with one query and one by one.
func BenchmarkSessionRuns(b *testing.B) {
	ctx, s := context.Background(), setup(b)
	session := newSession(1)
	agents := newAgents(session, 1000)
	for i := range agents {
		r := newRun(i + 1)
		create(b, s, r)
		agents[i].Status, agents[i].Run, agents[i].StartedAt = agency.AgentRunning, r.ID, new(time.Now())
	}
	createSession(b, s, session, agents)
	b.Run("together", func(b *testing.B) {
		for b.Loop() {
			if runs, err := s.SessionRuns(ctx, session.ID, false); err != nil || len(runs) != len(agents) {
				b.Fatal(len(runs), err)
			}
		}
	})
	b.Run("each", func(b *testing.B) {
		for b.Loop() {
			for i := range agents {
				if _, err := s.Run(ctx, agents[i].Run); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
