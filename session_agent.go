package agency

import (
	"encoding/json"
	"fmt"
	"time"
)

// Limits of what the executor of an outside session may say.
const (
	ExternalTextLimit  = 16 << 10 // bytes of one text
	ExternalExtraLimit = 64 << 10 // bytes of the members of an agent that agency does not know
)

// AgentStatus is how one agent of a session stands.
type AgentStatus string

// The statuses of an agent. The last three are final. Retries happen inside running.
const (
	AgentQueued    AgentStatus = "queued"
	AgentRunning   AgentStatus = "running"
	AgentComplete  AgentStatus = "complete"
	AgentFailed    AgentStatus = "failed"
	AgentCancelled AgentStatus = "cancelled"
)

// AgentStatuses are all statuses, in the order of a life.
func AgentStatuses() []AgentStatus {
	return []AgentStatus{AgentQueued, AgentRunning, AgentComplete, AgentFailed, AgentCancelled}
}

// Final says that nothing can happen to the agent any more.
func (s AgentStatus) Final() bool {
	return s == AgentComplete || s == AgentFailed || s == AgentCancelled
}

// NextAgent says whether an agent may go from one status to another: queued to running or cancelled, running to complete,
// failed or cancelled. Everything else is E_INVALID_STATE.
func NextAgent(from, to AgentStatus) error {
	switch {
	case from == AgentQueued && (to == AgentRunning || to == AgentCancelled):
		return nil
	case from == AgentRunning && to.Final():
		return nil
	}
	return Errorf(CodeInvalidState, "an agent that is %s cannot become %s", from, to)
}

// SessionAgent is the durable record of one agent of a session.
type SessionAgent struct {
	Session     SessionID
	Position    int // in the plan, from 0
	ID          string
	Name        string
	PromptPath  string // relative to the repository; empty when the prompt came from no file
	Wave        int    // from 1; 0 is in none
	Status      AgentStatus
	StartedAt   *time.Time
	CompletedAt *time.Time
	ExitCode    *int
	PID         *int
	LogFile     string // relative to the repository
	Model       string
	Error       string

	// Run is the newest run of the agent. It is drawn before the run is made, so that a crash cannot make a second one. Empty
	// until the agent starts, and for an outside agent for ever.
	Run RunID
	// Tries counts the attempts that ended and were the agent's own fault: what retries are spent on.
	Tries int
	// Losses counts the attempts that ended by no fault of the agent's: a reboot, a rate limit.
	Losses int
	// Attempt is the number of the newest attempt of Run whose end was taken note of.
	Attempt int
	// NotBefore puts the next attempt off; nil is at once.
	NotBefore *time.Time
	// Waits counts the starts in a row that failed by no fault of the agent's.
	Waits int
	// Stopping is the number of the attempt of Run that the session itself ends, 0 none, and StopReason why; empty is that the
	// agent is ready.
	Stopping   int
	StopReason string
	// Extra are the members of the status file that agency does not know, likewise.
	Extra json.RawMessage
	// Absent names the members of the status file that an outside executor left out and that are left out again.
	Absent []string
}

// Duration is how long the agent took; false until it has begun and ended.
func (a *SessionAgent) Duration() (time.Duration, bool) {
	if a.StartedAt == nil || a.CompletedAt == nil {
		return 0, false
	}
	return a.CompletedAt.Sub(*a.StartedAt), true
}

// NeedsPerson says that the agent goes no further until somebody acts: it cannot start, or its run, with its newest attempt and the
// label of that, waits. An attempt whose end was taken note of waits for nobody: another one follows.
func (a *SessionAgent) NeedsPerson(attempt int, label Label) bool {
	switch a.Status {
	case AgentQueued:
		return a.WaitReason() != ""
	case AgentRunning:
		return attempt > a.Attempt && label.NeedsPerson()
	default:
		return false
	}
}

// EventDraft tells how the agent stands.
func (a *SessionAgent) EventDraft() EventDraft {
	return EventDraft{Type: SessionAgentEvent, Data: sessionDraft{
		Session: a.Session, Agent: a.ID, Status: string(a.Status), Run: a.Run, ExitCode: a.ExitCode, Error: a.Error,
	}}
}

// AgentReport is what an outside executor reports of one agent.
type AgentReport struct {
	Session SessionID
	Agent   string
	// Apply edits the agent, or refuses. The session is as it was before, and only to be looked at. That the transition is one, the
	// store checks.
	Apply func(s *Session, a *SessionAgent, now time.Time) error
}

// WaitReason returns what a queued agent needs a user for; empty when it needs none.
func (a *SessionAgent) WaitReason() string {
	if a.Status != AgentQueued {
		return ""
	}
	return OneLine(a.Error)
}

// WaitingWord begins the Error of an agent whose start waits. One that is queued waits for a person.
const WaitingWord = "waiting: "

// AgentBranch is the branch of an agent's run.
func AgentBranch(session SessionID, agent string) string {
	return fmt.Sprintf("agency/%s/%s", session, agent)
}

// AgentResult is what an agent of a session came to. It is found out once, when the agent is final, and kept, so that it
// outlives the agent's worktree.
type AgentResult struct {
	Commits int    `json:"commits"` // since it began
	Files   int    `json:"files"`   // that differ from where it began, whether that is committed or not
	Added   int    `json:"added"`   // lines
	Deleted int    `json:"deleted"` // lines
	Dirty   bool   `json:"dirty"`   // something is not committed
	Branch  string `json:"branch"`  // where the commits are
	Tests   string `json:"tests"`   // what the agent says of how to test; untrusted
	Usage   Usage  `json:"usage"`
	// Nested are repositories inside its worktree, relative to it: nothing of them is in what others start from.
	Nested []string `json:"nested"`
	// Problem is why git could not tell the numbers; empty when they are known.
	Problem string `json:"problem"`
}
