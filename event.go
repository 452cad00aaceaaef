package agency

import (
	"encoding/json"
	"strings"
	"time"
)

// EventType names what happened. The data of an event about a landing, an entry of a landing queue or
// such a queue is its record. That of an event about a session has the session's id, and the agent's
// id if it is about one.
type EventType string

// The events of the record. Each is written in the same transaction as the change that it
// describes.
const (
	RunCreated      EventType = "run.created"      // a run was recorded, before anything of it was made
	RunStep         EventType = "run.step"         // a step of creation or removal is done
	RunRemoved      EventType = "run.removed"      // worktree and tmux session are gone
	RunUndone       EventType = "run.undone"       // a failed creation was undone
	RunRebuilt      EventType = "run.rebuilt"      // its missing part of the record was read from its directory
	AttemptCreated  EventType = "attempt.created"  // a later attempt of a run was requested
	AttemptStarted  EventType = "attempt.started"  // the runner started
	AttemptStopping EventType = "attempt.stopping" // a stop was requested
	AttemptEnded    EventType = "attempt.ended"    // the attempt is final
	ContractChanged EventType = "contract.changed" // the runner's status file changed, or became invalid
	// AgentStateChanged means that the agent's evidence changed its state: a turn, a request, an
	// error, a report.
	AgentStateChanged EventType = "agent_state.changed"
	// RequestRefused means that the agent made a request in its own protocol that agency does not know
	// and refuses, for the first time in this attempt; the data has its name and its id.
	RequestRefused EventType = "request.refused"
	InputDelivered EventType = "input.delivered" // a message, keys or an answer went to the agent
	// NetworkRefused means that the agent asked for a host that is not on its list, for the first
	// time in this attempt; the data is the refusal.
	NetworkRefused EventType = "network.refused"
	// LimitReached means that an attempt reached a limit of its resources, for the first time.
	LimitReached EventType = "limit.reached"
	// NetworkGranted means that the user allowed the run one more host; the data is the grant.
	NetworkGranted EventType = "network.granted"
	// NetworkBroken means that the attempt reaches nothing any more.
	NetworkBroken     EventType = "network.broken"
	WrapperReplaced   EventType = "wrapper.replaced" // a new wrapper adopted the agent of one that was killed
	WrapperAdopted    EventType = "wrapper.adopted"  // a wrapper is connected again after a daemon restart
	RunTagged         EventType = "run.tagged"       // its tags changed
	RunFlagged        EventType = "run.flagged"      // a user or agent flagged it, with the reason
	RunUnflagged      EventType = "run.unflagged"    // the flag was removed, or a new attempt began
	RunMerged         EventType = "run.merged"       // its work is in a target
	RunUnmerged       EventType = "run.unmerged"     // its landing was undone, or a new attempt began
	RunAbandoned      EventType = "run.abandoned"    // a user or agent gave it up; nothing of it was deleted
	RunUnabandoned    EventType = "run.unabandoned"  // a user or agent took that back
	LandingBegun      EventType = "landing.begun"    // recorded and pinned, before the target moves
	LandingDone       EventType = "landing.landed"   // the target has the work
	LandingGivenUp    EventType = "landing.failed"   // the target was not moved
	LandingTaken      EventType = "landing.undone"   // the target was taken back
	CheckEnded        EventType = "check.ended"      // a check of its work has a verdict
	CommentChanged    EventType = "comment.changed"  // comments on its work have a state: written, sent, or taken back
	ReviewChanged     EventType = "review.changed"   // the user marked files of its work as reviewed, or took that back
	RunPushed         EventType = "run.pushed"       // its work, or a target with its work, is on a remote; the data is the push
	PRChanged         EventType = "pr.changed"       // it has a pull request, or another state of it is known; the data is the pull request
	QueueAdded        EventType = "queue.added"      // a run was added to a queue
	QueueChanged      EventType = "queue.changed"    // an entry changed its state, its reason or its source
	QueueNoted        EventType = "queue.noted"      // a queue was paused or resumed, or something else is in its way
	AlertOpened       EventType = "alert.opened"     // a user or agent must act
	AlertNotified     EventType = "alert.notified"   // recipients were notified
	AlertAcked        EventType = "alert.acked"      // a user or agent acknowledged it
	AlertSnoozed      EventType = "alert.snoozed"    // a user or agent postponed it
	AlertResolved     EventType = "alert.resolved"   // its cause is over
	AlertUpdated      EventType = "alert.updated"    // more is known of the request
	AlertReopened     EventType = "alert.reopened"   // the event that hid its condition, such as a later question, ended
	MessageSent       EventType = "message.sent"     // a message is in the inboxes of its recipients, or dead
	MessageAcked      EventType = "message.acked"    // a recipient acknowledged messages
	NoticeSent        EventType = "notice.sent"      // a channel accepted it
	NoticeDead        EventType = "notice.dead"      // a channel failed for the last time
	SessionCreated    EventType = "session.created"  // a session was recorded
	SessionAgentEvent EventType = "session.agent"    // an agent changed its status or its attempt
	SessionChanged    EventType = "session.changed"  // it was paused, resumed, or given another limit
	SessionSettled    EventType = "session.settled"  // all of its agents have ended
	SessionReported   EventType = "session.reported" // the results of its agents are known, and its report is written, or cannot be
	SessionRemoved    EventType = "session.removed"  // its record was removed
	TimerStarted      EventType = "timer.started"    // a timer was started or replaced
	TimerStopped      EventType = "timer.stopped"    // by itself or on request
	RepositoryMoved   EventType = "repository.moved" // a repository is at another path
	TrustGranted      EventType = "trust.granted"    // the user allowed what a repository wants done in new worktrees
	TrustRevoked      EventType = "trust.revoked"    // the user took back all that was allowed in a repository
	DaemonStarted     EventType = "daemon.started"   // a daemon began to serve
	DaemonStopped     EventType = "daemon.stopped"   // a daemon was stopped
)

// OfSession reports whether the event is about a session rather than a run.
func (t EventType) OfSession() bool { return strings.HasPrefix(string(t), "session.") }

// Event is one line of the append-only record.
type Event struct {
	// Seq is the number of the event, which is the order and has no gaps for a client that sees all
	// events.
	Seq     int64           `json:"seq"`
	At      time.Time       `json:"at"`                // when it was recorded
	Type    EventType       `json:"type"`              // what happened
	RunID   RunID           `json:"run_id,omitempty"`  // the run that it is about; left out when it is about none
	Run     string          `json:"run,omitempty"`     // what users call the run: its name, or else its handle
	Attempt int             `json:"attempt,omitempty"` // the number of the attempt that it is about; left out when it is about none
	Data    json.RawMessage `json:"data"`              // an object; what it holds depends on the type
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
