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
	AlertSessionFailed  AlertKind = "session.failed"  // it has settled, and an agent failed
)

// SessionAlertKinds returns all kinds about sessions.
func SessionAlertKinds() []AlertKind {
	return []AlertKind{AlertSessionPaused, AlertSessionWaiting, AlertSessionFailed}
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
	RunID   RunID     `json:"run_id"`     // empty unless about a worker
	Session SessionID `json:"session_id"` // empty unless about a session
	Attempt int       `json:"attempt"`    // 0 unless about a worker
	Cause   string    `json:"cause"`
	// Payload is a JSON object. For a worker it has worker_id, worker_name, attempt, repo and the
	// fields of the kind.
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
