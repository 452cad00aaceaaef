package agency

import (
	"encoding/json"
	"time"
)

// AlertKind is why a user or agent must act. Its values appear in the messages and notices that are
// sent.
type AlertKind string

// The kinds of alerts about workers. When several apply, the first wins.
const (
	AlertLost       AlertKind = "worker.lost"        // the worker disappeared, or never started
	AlertError      AlertKind = "worker.error"       // it failed, or its model refuses its calls
	AlertNeedsInput AlertKind = "worker.needs_input" // it waits for an answer
	AlertComplete   AlertKind = "worker.complete"    // its work can be reviewed
	AlertStuck      AlertKind = "worker.stuck"       // it counts as working, but shows no progress
)

// AlertKinds returns all kinds about workers, in the order in which they win.
func AlertKinds() []AlertKind {
	return []AlertKind{AlertLost, AlertError, AlertNeedsInput, AlertComplete, AlertStuck}
}

// The kinds of alerts about sessions. Several can be open at once.
const (
	AlertSessionPaused  AlertKind = "session.paused"  // agency paused it, and the user must decide how it continues
	AlertSessionWaiting AlertKind = "session.waiting" // one of its agents cannot start without the user
	AlertSessionFailed  AlertKind = "session.failed"  // it has settled, and an agent failed, or its work was refused when it was to land
)

// SessionAlertKinds returns all kinds about sessions.
func SessionAlertKinds() []AlertKind {
	return []AlertKind{AlertSessionPaused, AlertSessionWaiting, AlertSessionFailed}
}

// The kinds of alerts about runs in landing queues. A run can have one for each branch in which it
// is to land, besides its alert as a worker.
const (
	AlertLandingConflict AlertKind = "landing.conflict" // it conflicts with the branch, and its agent does not solve that
	AlertLandingFailed   AlertKind = "landing.failed"   // a check of the branch does not pass because of it
	AlertLandingHeld     AlertKind = "landing.held"     // it waits for the user, who did not hold it
)

// LandingAlertKinds returns all kinds about runs in landing queues.
func LandingAlertKinds() []AlertKind {
	return []AlertKind{AlertLandingConflict, AlertLandingFailed, AlertLandingHeld}
}

// AlertHostDisk is the kind of alert about the machine: a disk that agency writes to is nearly
// full. It belongs to no run and no session.
const AlertHostDisk AlertKind = "host.disk"

// HostAlertKinds returns all kinds about the machine.
func HostAlertKinds() []AlertKind { return []AlertKind{AlertHostDisk} }

// Words returns the kind as a sentence part about a worker, a session or a disk.
func (k AlertKind) Words() string {
	switch k {
	case AlertLost:
		return "was lost"
	case AlertError:
		return "failed"
	case AlertNeedsInput:
		return "waits for you"
	case AlertComplete:
		return "is done"
	case AlertStuck:
		return "hangs"
	case AlertSessionPaused, AlertSessionWaiting:
		return "waits for you"
	case AlertSessionFailed:
		return "failed"
	case AlertLandingConflict, AlertLandingFailed:
		return "cannot land"
	case AlertLandingHeld:
		return "waits for you before it lands"
	case AlertHostDisk:
		return "is nearly full"
	}
	return string(k)
}

// PromptType is the type of input that a worker waits for.
type PromptType string

// The types of prompts.
const (
	PromptConfirmation PromptType = "confirmation" // a dialog of its program
	PromptPermission   PromptType = "permission"
	PromptInput        PromptType = "input"
	PromptBlocked      PromptType = "blocked"
	PromptTurnEnded    PromptType = "turn_ended" // it stopped without an explanation
	PromptAttention    PromptType = "attention"  // the run was flagged
)

// Alert is one episode in which a user or agent must act on a worker, a session or the machine. It
// opens once, may be acknowledged or snoozed, and is resolved when its condition ends. If another
// alert only hid the condition, the same alert opens again afterwards.
type Alert struct {
	ID      string    `json:"id"`
	Seq     int64     `json:"seq"`
	Kind    AlertKind `json:"msg_type"`
	RunID   RunID     `json:"run_id"`     // empty unless about a worker or its landing
	Session SessionID `json:"session_id"` // empty unless about a session
	Attempt int       `json:"attempt"`    // 0 unless about a worker
	Cause   string    `json:"cause"`
	// Payload is a JSON object. For a worker it has worker_id, worker_name, attempt, repo and the
	// fields of the kind; for a landing worker_id, worker_name, repo, target, source, text and
	// command.
	Payload json.RawMessage `json:"payload"`

	OpenedAt     time.Time  `json:"opened_at"`
	ResolvedAt   *time.Time `json:"resolved_at"`
	AckedAt      *time.Time `json:"acked_at"`
	AckedBy      string     `json:"acked_by"`
	SnoozedUntil *time.Time `json:"snoozed_until"`
	// NotifyCount counts the notifications of the alert. Level is how far it was escalated: 0 the
	// owner, 1 the orchestrator, 2 the user.
	NotifyCount int        `json:"notify_count"`
	Level       int        `json:"level"`
	NotifiedAt  *time.Time `json:"notified_at"`
	// Recipients are those of the last notification; empty means that none could be reached.
	Recipients []string `json:"recipients"`
}

// LongestSnooze is the longest time for which an alert can be snoozed.
const LongestSnooze = 30 * 24 * time.Hour

// Open reports whether a user or agent must still act.
func (a *Alert) Open() bool { return a.ResolvedAt == nil }

// AlertSessionName returns the name of an alert's session from the payload, which outlives the
// session; empty when it has none.
func AlertSessionName(payload json.RawMessage) string {
	var p struct {
		Name string `json:"session_name"`
	}
	_ = json.Unmarshal(payload, &p) // an invalid payload has no name
	return p.Name
}

// AlertFilter chooses alerts.
type AlertFilter struct {
	IDs      []string  // empty is all
	Run      RunID     // empty is every run
	Session  SessionID // empty is every session
	Host     bool      // only alerts about the machine
	Repo     string    // fingerprint, alerts about the machine included; empty is every repository
	Resolved bool      // include resolved alerts
	After    int64     // only alerts with a greater Seq
}

// TestNotice is the kind of the notice that a user sends to test a channel.
const TestNotice = "notify.test"

// Notice is a notification for the user. Title, body and payload may quote an agent: untrusted.
type Notice struct {
	ID      string          `json:"id"`       // a channel gets a notice of the same id once
	Kind    string          `json:"msg_type"` // that of an alert, or TestNotice
	Title   string          `json:"title"`
	Body    string          `json:"body"`
	RunID   RunID           `json:"run_id"`   // empty when it is not about a run
	RunName string          `json:"run_name"` // what users call the run
	Repo    string          `json:"repo"`     // the path of its repository
	Tags    []string        `json:"tags"`     // of the run
	Payload json.RawMessage `json:"payload"`  // an object
	At      time.Time       `json:"at"`
	// Reminder reports whether the user was notified of the same alert before. It is not stored.
	Reminder bool `json:"-"`
}

// Dispatch is one notice on its way through one channel. It waits until it is sent or dead.
type Dispatch struct {
	Notice   Notice
	Channel  string
	Tries    int
	DueAt    time.Time // time of the next try
	SentAt   *time.Time
	FailedAt *time.Time // time of the last failed try
	Error    string     // of that try; may quote another program: untrusted
	DeadAt   *time.Time // when it was given up
}

// Settled reports whether the dispatch is final: sent or dead.
func (d *Dispatch) Settled() bool { return d.SentAt != nil || d.DeadAt != nil }

// ChannelState is the state of one channel.
type ChannelState struct {
	Channel  string
	Waiting  int
	Dead     int
	DueAt    *time.Time // the next try; nil when nothing waits
	SentAt   *time.Time // the last success
	FailedAt *time.Time // the last failure
	Error    string     // of the last failure
}

// NoticeKind is the kind of a notice about a session. Its values appear in the messages and notices
// that are sent.
type NoticeKind string

// The kinds of notices about sessions that need no action. Those that need one are alerts.
const (
	NoticeComplete  NoticeKind = "session.complete"
	NoticeCancelled NoticeKind = "session.cancelled"
)

// NoticeKinds returns all kinds.
func NoticeKinds() []NoticeKind {
	return []NoticeKind{NoticeComplete, NoticeCancelled}
}

// Words returns the kind as a sentence part about a session.
func (k NoticeKind) Words() string {
	switch k {
	case NoticeComplete:
		return "is complete"
	case NoticeCancelled:
		return "was cancelled"
	}
	return string(k)
}
