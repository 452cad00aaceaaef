package clitest

import (
	"encoding/json"
	"time"

	"agency"
	"agency/internal/api"
)

// SomeSession returns a session with these agents, begun at SessionStart; it took ten minutes if it
// is over.
func SomeSession(status agency.SessionStatus, agents ...api.SessionAgent) api.ShowSessionResponse {
	resp := api.ShowSessionResponse{
		Session: api.Session{
			ID: "20260201-143022-abc12345", Name: "auth", Status: status, Source: "orchestrate", Repo: "/src/app", MaxParallel: 3,
			Dir: "/src/app/.agency/status/sessions/20260201-143022-abc12345", StartedAt: SessionStart,
		},
		Agents: agents, Waves: []api.Wave{}, StatusFile: json.RawMessage("{}"),
	}
	for i := range agents {
		resp.Session.Summary.Add(agents[i].Status, 1)
		if agents[i].NeedsUser {
			resp.Session.Waiting++
		}
	}
	if status.Final() {
		resp.Session.CompletedAt = new(SessionStart.Add(10 * time.Minute))
		resp.Session.ReportPath = resp.Session.Dir + "/report.md"
	}
	return resp
}

// SomeAgent returns an agent that began a minute after its session, and took two minutes if it is
// over.
func SomeAgent(id string, wave int, status agency.AgentStatus) api.SessionAgent {
	a := api.SessionAgent{ID: id, Name: "does-" + id, Wave: wave, Status: status, After: []string{}}
	if status != agency.AgentQueued {
		a.StartedAt, a.RunID, a.Run, a.Attempts = new(SessionStart.Add(time.Minute)), agency.RunID("r_"+id), "run-"+id, 1
		a.Branch = "agency/20260201-143022-abc12345/" + id
	}
	if status.Final() {
		a.CompletedAt = new(SessionStart.Add(3 * time.Minute))
	}
	return a
}

// SessionStart is when the sessions of tests begin.
var SessionStart = time.Date(2026, 2, 1, 14, 30, 22, 0, time.UTC)
