package agency_test

import (
	"testing"

	"agency"
)

// An agent needs the user when it cannot start, or when its running attempt waits for the user; not
// when another attempt follows.
func TestAgentNeedsUser(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		a       agency.SessionAgent
		attempt int
		label   agency.Label
		want    bool
	}{
		"queued":             {agency.SessionAgent{Status: agency.AgentQueued}, 0, "", false},
		"cannot start":       {agency.SessionAgent{Status: agency.AgentQueued, Error: "waiting: conflict"}, 0, "", true},
		"starting":           {agency.SessionAgent{Status: agency.AgentRunning}, 0, "", false},
		"start waits":        {agency.SessionAgent{Status: agency.AgentRunning, Error: "waiting: the disk is full"}, 0, "", false},
		"works":              {agency.SessionAgent{Status: agency.AgentRunning}, 1, agency.Working, false},
		"asks":               {agency.SessionAgent{Status: agency.AgentRunning}, 1, agency.NeedsInput, true},
		"another follows":    {agency.SessionAgent{Status: agency.AgentRunning, Attempt: 1}, 1, agency.NeedsAttention, false},
		"asks again":         {agency.SessionAgent{Status: agency.AgentRunning, Attempt: 1}, 2, agency.Blocked, true},
		"failed":             {agency.SessionAgent{Status: agency.AgentFailed, Error: "exit 1"}, 1, agency.NeedsAttention, false},
		"ended while asking": {agency.SessionAgent{Status: agency.AgentCancelled}, 1, agency.NeedsInput, false},
	} {
		if got := c.a.NeedsUser(c.attempt, c.label); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
