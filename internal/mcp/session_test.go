package mcp

import (
	"fmt"
	"testing"

	"agency"
	"agency/internal/api"
)

// An answer that cannot list all agents of a session lists those that need a user.
func TestManyAgents(t *testing.T) {
	t.Parallel()
	resp := &api.ShowSessionResponse{}
	for i := range mostAgents + 1 {
		resp.Agents = append(resp.Agents, api.SessionAgent{ID: fmt.Sprintf("%03d", i), Status: agency.AgentComplete})
	}
	resp.Agents[mostAgents].Status, resp.Agents[mostAgents].NeedsUser = agency.AgentRunning, true
	answer := newSessionAnswer(resp, nil)
	if len(answer.Agents) != mostAgents || answer.Omitted != 1 || answer.Agents[0].ID != resp.Agents[mostAgents].ID {
		t.Errorf("%d agents, %d omitted, the first is %+v", len(answer.Agents), answer.Omitted, answer.Agents[0])
	}
	if answer = newSessionAnswer(resp, []agency.AgentStatus{agency.AgentRunning}); len(answer.Agents) != 1 || answer.Omitted != 0 {
		t.Errorf("%d running agents, %d omitted", len(answer.Agents), answer.Omitted)
	}
}
