package agency

import (
	"encoding/json"
	"strings"
	"time"
)

// EventType names what happened.
type EventType string

// The events of the record. Each is written in the same transaction as the change that it tells of.
const (
	RunCreated      EventType = "run.created"
	RunStep         EventType = "run.step"        // a step of creation or removal is done
	RunRemoved      EventType = "run.removed"     // worktree and session are gone
	RunUndone       EventType = "run.undone"      // a creation that failed was taken back
	RunRebuilt      EventType = "run.rebuilt"     // what the record lacked of it was read from its folder
	AttemptCreated  EventType = "attempt.created" // a later attempt of a run was asked for
	AttemptStarted  EventType = "attempt.started"
	AttemptStopping EventType = "attempt.stopping" // a stop was asked for
	AttemptEnded    EventType = "attempt.ended"
	ContractChanged EventType = "contract.changed" // the runner's own word changed, or became invalid
	// AgentStateChanged tells that the agent's evidence means something new: a turn, a request, an error, a report.
	AgentStateChanged EventType = "situation.changed"
	InputDelivered    EventType = "input.delivered"
	WrapperAdopted    EventType = "wrapper.adopted" // a wrapper is connected again after a daemon restart
	RunTagged         EventType = "run.tagged"
	RunFlagged        EventType = "run.flagged"   // somebody said that it needs attention, and why
	RunUnflagged      EventType = "run.unflagged" // somebody took that back, or a new attempt began
	AlertOpened       EventType = "alert.opened"
	AlertNotified     EventType = "alert.notified"
	AlertAcked        EventType = "alert.acked"
	AlertSnoozed      EventType = "alert.snoozed"
	AlertResolved     EventType = "alert.resolved"
	AlertUpdated      EventType = "alert.updated"  // what is asked is better known
	AlertReopened     EventType = "alert.reopened" // what hid its condition, such as a later question, is gone
	MessageSent       EventType = "message.sent"
	MessageAcked      EventType = "message.acked"
	NoticeSent        EventType = "notice.sent" // a channel took it
	NoticeDead        EventType = "notice.dead" // a channel did not, and it is not tried any more
	// The events of sessions carry the session's id in their data, and the agent's where they are about one.
	SessionCreated    EventType = "session.created"
	SessionAgentEvent EventType = "session.agent"   // an agent went on to another status, or to another attempt
	SessionChanged    EventType = "session.changed" // it was paused, resumed, or given another limit
	SessionSettled    EventType = "session.settled"
	SessionReported   EventType = "session.reported" // what its agents came to is known, and its report written
	SessionRemoved    EventType = "session.removed"
	TimerStarted      EventType = "timer.started"
	TimerStopped      EventType = "timer.stopped" // by itself or by somebody
	RepositoryMoved   EventType = "repository.moved"
	TrustGranted      EventType = "trust.granted" // somebody allowed what a repository wants done in new worktrees
	TrustRevoked      EventType = "trust.revoked"
	DaemonStarted     EventType = "daemon.started"
	DaemonStopped     EventType = "daemon.stopped"
)

// OfSession says that the event tells of a session rather than of a run.
func (t EventType) OfSession() bool { return strings.HasPrefix(string(t), "session.") }

// Event is one line of the append-only record. Seq is the order and has no gaps for a reader who sees all of them.
type Event struct {
	Seq     int64           `json:"seq"`
	At      time.Time       `json:"at"`
	Type    EventType       `json:"type"`
	RunID   RunID           `json:"run_id,omitempty"`
	Run     string          `json:"run,omitempty"` // how people call the run: its name, or else its handle
	Attempt int             `json:"attempt,omitempty"`
	Data    json.RawMessage `json:"data"` // an object
}

// SessionTurn is what one event told of a session that agency runs.
type SessionTurn struct {
	Type    EventType
	Session SessionID
	Alert   string // of events about alerts
	Agent   string // of session.agent, with its status and its error
	Status  AgentStatus
	Error   string
	Paused  string // of session.changed
}
