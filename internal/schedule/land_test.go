package schedule_test

import (
	"fmt"
	"testing"
	"time"

	"agency"
	"agency/internal/schedule"
)

// landStage returns a session of a chain a, b, c, each from the result of the one before, and of d
// by itself, all to be landed.
func landStage(statuses ...agency.AgentStatus) *schedule.State {
	p := &agency.Plan{MaxParallel: 1, OnFailure: agency.ContinueOnFailure}
	s := agency.Session{Status: agency.SessionRunning, MaxParallel: 1}
	var agents []agency.SessionAgent
	for i, status := range statuses {
		a := agency.PlanAgent{ID: string(rune('a' + i)), Base: agency.BaseDeps, Wave: i + 1, Land: agency.LandByMerge}
		if a.ID == "d" {
			a.Wave = 1
		} else if i > 0 {
			a.After = []string{string(rune('a' + i - 1))}
		}
		p.Agents = append(p.Agents, a)
		agents = append(agents, agency.SessionAgent{Position: i, ID: a.ID, Status: status, Run: agency.RunID("r_" + a.ID)})
		s.Counts.Add(status, 1)
	}
	return schedule.NewState(s, p, agents, retry)
}

// decided returns the actions on a session in words.
func decided(d *schedule.State) string {
	now := time.Date(2026, 2, 1, 14, 30, 22, 0, time.UTC)
	actions, _ := schedule.Decide(d, schedule.Clock{Now: now, Elapsed: now.Sub}, nil)
	words := ""
	for _, x := range actions {
		words += fmt.Sprintf("%s %d, ", x.Kind, x.Agent)
	}
	return words
}

// An agent lands when no agent that starts from its result can still begin or work; a session
// settles when nothing is left to land.
func TestLand(t *testing.T) {
	t.Parallel()
	const complete, running, failed, cancelled = agency.AgentComplete, agency.AgentRunning, agency.AgentFailed, agency.AgentCancelled
	for _, test := range []struct {
		statuses []agency.AgentStatus
		change   func(d *schedule.State)
		want     string
	}{
		{statuses: []agency.AgentStatus{complete, running, agency.AgentQueued}},
		{statuses: []agency.AgentStatus{complete, complete, running, complete}, want: "land 3, "},
		{statuses: []agency.AgentStatus{complete, failed, cancelled}, want: "land 0, "},
		{statuses: []agency.AgentStatus{complete, complete, complete, complete}, want: "land 0, "},
		{[]agency.AgentStatus{complete, complete, complete, complete}, func(d *schedule.State) { d.SetBusy(0, true) }, ""},
		{[]agency.AgentStatus{complete, failed, cancelled}, func(d *schedule.State) { d.Session.Paused = agency.PausedByHand }, ""},
		{[]agency.AgentStatus{complete, failed, cancelled}, func(d *schedule.State) { d.Session.CancelAt = new(time.Now()) }, "settle -1, "},
		{[]agency.AgentStatus{complete, failed, cancelled}, func(d *schedule.State) { d.Plan.Agents[0].Land = "" }, "settle -1, "},
		{[]agency.AgentStatus{complete, complete, failed}, func(d *schedule.State) { d.Plan.Agents[1].Base = "main" }, "land 0, "},
		{[]agency.AgentStatus{complete, running}, func(d *schedule.State) { d.Plan.Agents[1].Base = "main" }, "land 0, "},
		{[]agency.AgentStatus{complete, failed}, func(d *schedule.State) {
			d.SetBusy(0, true)
			d.Session.CancelAt = new(time.Now())
		}, ""},
	} {
		d := landStage(test.statuses...)
		if test.change != nil {
			test.change(d)
		}
		if got := decided(d); got != test.want {
			t.Errorf("%v: it decides %q, want %q", test.statuses, got, test.want)
		}
	}
}

// Every agent lands once, in the order of the waves, and then the session settles.
func TestLandOnce(t *testing.T) {
	t.Parallel()
	d := landStage(agency.AgentComplete, agency.AgentComplete, agency.AgentComplete, agency.AgentComplete)
	order := ""
	for range 10 {
		actions, _ := schedule.Decide(d, schedule.Clock{}, nil)
		x := actions[0]
		if x.Kind == schedule.ActSettle {
			break
		}
		a := *d.Agent(x.Agent)
		if x.Apply(&d.Session, &a, "", time.Time{}) {
			t.Fatal("a landing applies before it is done")
		}
		x.Landing.State = agency.WorkLanded
		if !x.Apply(&d.Session, &a, "", time.Time{}) || x.Apply(&d.Session, &a, "", time.Time{}) {
			t.Fatal("a landing applies not once")
		}
		d.Put(&a)
		order += a.ID
	}
	if order != "adbc" {
		t.Errorf("they land in the order %s", order)
	}
}
