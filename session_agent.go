package agency

import (
	"encoding/json"
	"fmt"
	"time"

	"agency/internal/plain"
)

// The limits for the reports of an external executor.
const (
	ExternalTextLimit  = 16 << 10 // bytes of one text
	ExternalExtraLimit = 64 << 10 // bytes of an agent's members that agency does not know
)

// AgentStatus is the state of one agent of a session.
type AgentStatus string

// The statuses of an agent. The last three are final. An agent stays running during retries.
const (
	AgentQueued    AgentStatus = "queued"    // it has not begun
	AgentRunning   AgentStatus = "running"   // it has begun and not ended, also between two attempts
	AgentComplete  AgentStatus = "complete"  // it did its work
	AgentFailed    AgentStatus = "failed"    // it failed, and is not tried again
	AgentCancelled AgentStatus = "cancelled" // it was given up, or never begins
)

// AgentStatuses returns all statuses, in the order in which an agent has them.
func AgentStatuses() []AgentStatus {
	return []AgentStatus{AgentQueued, AgentRunning, AgentComplete, AgentFailed, AgentCancelled}
}

// Final reports whether the status can no longer change.
func (s AgentStatus) Final() bool {
	return s == AgentComplete || s == AgentFailed || s == AgentCancelled
}

// NextAgent checks that an agent may change from one status to another: queued to running or
// cancelled, running to complete, failed or cancelled. Any other change is E_INVALID_STATE.
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

	// Run is the id of the agent's newest run. It is drawn before the run is made, so that a crash
	// cannot lead to a second one. It is empty until the agent starts, and always for an external
	// agent.
	Run RunID
	// Tries counts the attempts that ended through the agent's own fault. They use up its retries.
	Tries int
	// Losses counts the attempts that ended through no fault of the agent: a reboot, a rate limit.
	Losses int
	// Attempt is the number of the newest attempt of Run whose end was processed.
	Attempt int
	// NotBefore is the earliest time of the next attempt; nil is at once.
	NotBefore *time.Time
	// Waits counts the starts in a row that failed through no fault of the agent.
	Waits int
	// Stopping is the number of the attempt of Run that the session itself is ending, 0 for none.
	// StopReason is the reason; it is empty when the agent is ready.
	Stopping   int
	StopReason string
	// Landing is what the session did to land its work, where the plan says so.
	Landing AgentLanding
	// Extra holds the members of the status file that agency does not know, as in Session.
	Extra json.RawMessage
	// Absent names the members of the status file that an external executor left out. agency leaves
	// them out, too.
	Absent []string
}

// Duration returns how long the agent took; false until it has begun and ended.
func (a *SessionAgent) Duration() (time.Duration, bool) {
	if a.StartedAt == nil || a.CompletedAt == nil {
		return 0, false
	}
	return a.CompletedAt.Sub(*a.StartedAt), true
}

// NeedsUser reports whether the agent cannot continue until a user or agent acts: it cannot
// start, or its run waits. attempt and label describe the newest attempt of that run. An attempt
// whose end was processed does not count: another one follows.
func (a *SessionAgent) NeedsUser(attempt int, label Label) bool {
	switch a.Status {
	case AgentQueued:
		return a.WaitReason() != ""
	case AgentRunning:
		return attempt > a.Attempt && label.NeedsUser()
	default:
		return false
	}
}

// EventDraft returns an event with the state of the agent.
func (a *SessionAgent) EventDraft() EventDraft {
	return EventDraft{Type: SessionAgentEvent, Data: sessionDraft{
		Session: a.Session, Agent: a.ID, Status: string(a.Status), Run: a.Run, ExitCode: a.ExitCode, Error: a.Error,
	}}
}

// AgentReport is a report of an external executor about one agent.
type AgentReport struct {
	Session SessionID
	Agent   string
	// Apply edits the agent, or refuses. It must only read the session, which is in its state
	// before the change. The store checks that the transition is valid.
	Apply func(s *Session, a *SessionAgent, now time.Time) error
}

// WaitReason returns what a queued agent needs the user for; empty when it needs nothing.
func (a *SessionAgent) WaitReason() string {
	if a.Status != AgentQueued {
		return ""
	}
	return plain.OneLine(a.Error)
}

// WaitingWord begins the Error of an agent whose start waits. If the agent is queued, it waits for
// the user.
const WaitingWord = "waiting: "

// AgentAddress is how users name an agent: by its id alone while its session runs, or as
// SESSION/AGENT with the name or the id of the session.
type AgentAddress struct {
	Session SessionID
	Name    string // of the session; may be empty
	Running bool   // whether the session runs
	Agent   string
	Status  AgentStatus
	Run     RunID // empty until the agent begins
}

// detailAgent is the detail of an error that names an agent which may still begin.
const detailAgent = "agent"

// Unbegun returns the error for an agent without a run.
func (a *AgentAddress) Unbegun() *Error {
	text, mayBegin := "agent %q of session %s never began", a.Running && !a.Status.Final()
	if mayBegin {
		text = "agent %q of session %s has not begun"
	}
	err := Errorf(CodeRunNotFound, text, a.Agent, a.Session).WithHint("why: agency session show %s", a.Session)
	if mayBegin {
		// With the id of the session, the address always means the same agent.
		return err.WithDetail(detailAgent, string(a.Session)+"/"+a.Agent)
	}
	return err
}

// UnbegunAgent returns the address of the agent that has not begun, if an error is about such an
// agent and it may still begin; empty for any other error.
func UnbegunAgent(err error) string {
	if !IsCode(err, CodeRunNotFound) {
		return ""
	}
	address, _ := AsError(err).Details[detailAgent].(string)
	return address
}

// AgentBranch returns the branch of an agent's run.
func AgentBranch(session SessionID, agent string) string {
	return fmt.Sprintf("agency/%s/%s", session, agent)
}

// AgentResult is the result of an agent of a session. It is determined once, when the agent is
// final, and stored, so that it outlives the agent's worktree.
type AgentResult struct {
	Commits int    `json:"commits"` // since it began
	Files   int    `json:"files"`   // files changed since it began, committed or not
	Added   int    `json:"added"`   // lines
	Deleted int    `json:"deleted"` // lines
	Dirty   bool   `json:"dirty"`   // there are uncommitted changes
	Branch  string `json:"branch"`  // where the commits are
	Tests   string `json:"tests"`   // the agent's instructions for testing; untrusted
	Usage   Usage  `json:"usage"`   // of all attempts of its run together
	// Nested are repositories inside its worktree, relative to it. Agents that start from this
	// result get nothing of them.
	Nested []string `json:"nested"`
	// Problem is why git could not determine the numbers; empty when they are known.
	Problem string `json:"problem"`
}

// Changed reports whether the agent changed anything, as far as that is known.
func (r *AgentResult) Changed() bool {
	return r.Commits > 0 || r.Files > 0 || r.Dirty || r.Problem != ""
}
