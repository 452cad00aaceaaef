package session_test

import (
	"slices"
	"testing"
	"time"

	"agency"
	"agency/internal/cli/clitest"
	"agency/internal/cli/session"
)

// An agent between two attempts does not look as if it worked: the picture shows when its next
// attempt begins, and why.
func TestSessionShowsNextAttempt(t *testing.T) {
	t.Parallel()
	retries := clitest.SomeAgent("001", 1, agency.AgentRunning)
	retries.Error, retries.NotBefore = "exit 3", new(clitest.SessionStart.Add(5*time.Minute))
	s := clitest.SomeSession(agency.SessionRunning, retries, clitest.SomeAgent("002", 1, agency.AgentRunning))
	want := "○ 001  does-001  waiting  1m00s  attempt 2 at " + retries.NotBefore.Local().Format("15:04:05") + " (exit 3)"
	if got := session.Lines(&s, clitest.SessionStart.Add(2*time.Minute), 80, 0); !slices.Contains(got, want) {
		t.Errorf("got %q, want a line %q", got, want)
	}
}
