package agency

import (
	"encoding/json"
	"strings"
	"time"
)

// EventType names what happened.
type EventType string

// The events of the record. Each is written in the same transaction as the change that it
// describes.
const (
	RunCreated      EventType = "run.created"
	RunStep         EventType = "run.step"        // a step of creation or removal is done
	RunRemoved      EventType = "run.removed"     // worktree and tmux session are gone
	RunUndone       EventType = "run.undone"      // a failed creation was undone
	RunRebuilt      EventType = "run.rebuilt"     // its missing part of the record was read from its directory
	AttemptCreated  EventType = "attempt.created" // a later attempt of a run was requested
	AttemptStarted  EventType = "attempt.started"
	AttemptStopping EventType = "attempt.stopping" // a stop was requested
	AttemptEnded    EventType = "attempt.ended"
	ContractChanged EventType = "contract.changed" // the runner's status file changed, or became invalid
	// AgentStateChanged means that the agent's evidence changed its state: a turn, a request, an
	// error, a report.
	AgentStateChanged EventType = "agent_state.changed"
	InputDelivered    EventType = "input.delivered"
	// NetworkRefused means that the agent asked for a host that is not on its list, for the first
	// time in this attempt; the data is the refusal.
	NetworkRefused EventType = "network.refused"
	// LimitReached means that an attempt reached a limit of its resources, for the first time.
	LimitReached EventType = "limit.reached"
	// NetworkGranted means that the user allowed the run one more host; the data is the grant.
	NetworkGranted EventType = "network.granted"
	// NetworkBroken means that the attempt reaches nothing any more.
	NetworkBroken   EventType = "network.broken"
	WrapperReplaced EventType = "wrapper.replaced" // a new wrapper adopted the agent of one that was killed
	WrapperAdopted  EventType = "wrapper.adopted"  // a wrapper is connected again after a daemon restart
	RunTagged       EventType = "run.tagged"
	RunFlagged      EventType = "run.flagged"   // a user or agent flagged it, with the reason
	RunUnflagged    EventType = "run.unflagged" // the flag was removed, or a new attempt began
	RunMerged       EventType = "run.merged"    // its work is in a target
	RunUnmerged     EventType = "run.unmerged"  // its landing was undone, or a new attempt began
	RunAbandoned    EventType = "run.abandoned" // a user or agent gave it up; nothing of it was deleted
	RunUnabandoned  EventType = "run.unabandoned"
	// The events of landings have the record of the landing as their data.
	LandingBegun   EventType = "landing.begun" // recorded and pinned, before the target moves
	LandingDone    EventType = "landing.landed"
	LandingGivenUp EventType = "landing.failed"
	LandingTaken   EventType = "landing.undone"
	CheckEnded     EventType = "check.ended"     // a check of its work has a verdict
	CommentChanged EventType = "comment.changed" // comments on its work have a state: written, sent, or taken back
	RunPushed      EventType = "run.pushed"      // its work, or a target with its work, is on a remote; the data is the push
	PRChanged      EventType = "pr.changed"      // it has a pull request, or another state of it is known; the data is the pull request
	// The events of queues have the record of the entry, or of the queue, as their data.
	QueueAdded    EventType = "queue.added"
	QueueChanged  EventType = "queue.changed" // an entry changed its state, its reason or its source
	QueueNoted    EventType = "queue.noted"   // a queue was paused or resumed, or something else is in its way
	AlertOpened   EventType = "alert.opened"
	AlertNotified EventType = "alert.notified"
	AlertAcked    EventType = "alert.acked"
	AlertSnoozed  EventType = "alert.snoozed"
	AlertResolved EventType = "alert.resolved"
	AlertUpdated  EventType = "alert.updated"  // more is known of the request
	AlertReopened EventType = "alert.reopened" // the event that hid its condition, such as a later question, ended
	MessageSent   EventType = "message.sent"
	MessageAcked  EventType = "message.acked"
	NoticeSent    EventType = "notice.sent" // a channel accepted it
	NoticeDead    EventType = "notice.dead" // a channel failed for the last time
	// The events of sessions carry the session's id in their data, and the agent's id if they are
	// about one.
	SessionCreated    EventType = "session.created"
	SessionAgentEvent EventType = "session.agent"   // an agent changed its status or its attempt
	SessionChanged    EventType = "session.changed" // it was paused, resumed, or given another limit
	SessionSettled    EventType = "session.settled"
	SessionReported   EventType = "session.reported" // the results of its agents are known, and its report is written
	SessionRemoved    EventType = "session.removed"
	TimerStarted      EventType = "timer.started"
	TimerStopped      EventType = "timer.stopped" // by itself or on request
	RepositoryMoved   EventType = "repository.moved"
	TrustGranted      EventType = "trust.granted" // the user allowed what a repository wants done in new worktrees
	TrustRevoked      EventType = "trust.revoked"
	DaemonStarted     EventType = "daemon.started"
	DaemonStopped     EventType = "daemon.stopped"
)

// OfSession reports whether the event is about a session rather than a run.
func (t EventType) OfSession() bool { return strings.HasPrefix(string(t), "session.") }

// Event is one line of the append-only record. Seq is the order and has no gaps for a reader who
// sees all events.
type Event struct {
	Seq     int64           `json:"seq"`
	At      time.Time       `json:"at"`
	Type    EventType       `json:"type"`
	RunID   RunID           `json:"run_id,omitempty"`
	Run     string          `json:"run,omitempty"` // what users call the run: its name, or else its handle
	Attempt int             `json:"attempt,omitempty"`
	Data    json.RawMessage `json:"data"` // an object
}

// SessionTurn is the content of one event of a session that agency runs.
type SessionTurn struct {
	Type    EventType
	Session SessionID
	Alert   string // of events about alerts
	Agent   string // of session.agent, with its status and its error
	Status  AgentStatus
	Error   string
	Paused  string // of session.changed
}
