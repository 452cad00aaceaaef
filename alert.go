package agency

import (
	"encoding/json"
	"time"

	"agency/internal/duration"
)

// AlertKind says why somebody must act. The words are those of the messages that go out.
type AlertKind string

// The kinds of alerts about workers, in the order in which they win when several hold.
const (
	AlertLost       AlertKind = "worker.lost"        // the worker disappeared, or never started
	AlertError      AlertKind = "worker.error"       // it failed, or its model refuses it
	AlertNeedsInput AlertKind = "worker.needs_input" // it waits for somebody
	AlertComplete   AlertKind = "worker.complete"    // its work can be looked at
	AlertStuck      AlertKind = "worker.stuck"       // it is said to work, and nothing moves
)

// AlertKinds are all kinds about workers, the first to win first.
func AlertKinds() []AlertKind {
	return []AlertKind{AlertLost, AlertError, AlertNeedsInput, AlertComplete, AlertStuck}
}

// The kinds of alerts about sessions. Several can be open at once.
const (
	AlertSessionPaused  AlertKind = "session.paused"  // agency paused it, and somebody must say how it goes on
	AlertSessionWaiting AlertKind = "session.waiting" // an agent of it cannot start without a person
	AlertSessionFailed  AlertKind = "session.failed"  // it has settled, and an agent failed
)

// SessionAlertKinds are all kinds about sessions.
func SessionAlertKinds() []AlertKind {
	return []AlertKind{AlertSessionPaused, AlertSessionWaiting, AlertSessionFailed}
}

// AlertHostDisk is the kind of alerts about the machine: a disk that agency writes on is nearly full. It belongs to no run and no session.
const AlertHostDisk AlertKind = "host.disk"

// HostAlertKinds are all kinds about the machine.
func HostAlertKinds() []AlertKind { return []AlertKind{AlertHostDisk} }

// Words are what a kind says of a worker, a session or a disk.
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

// PromptType is what a worker that needs input waits for.
type PromptType string

// The types of prompts.
const (
	PromptConfirmation PromptType = "confirmation" // a dialog of its program
	PromptPermission   PromptType = "permission"
	PromptInput        PromptType = "input"
	PromptBlocked      PromptType = "blocked"
	PromptTurnEnded    PromptType = "turn_ended" // it stopped without a word
	PromptAttention    PromptType = "attention"  // the run was flagged
)

// Alert is one episode in which somebody must act on a worker, a session or the machine: it opens once, may be acknowledged or snoozed, and
// is resolved when its condition goes. Where that only hid behind another one, the same alert is open again afterwards.
type Alert struct {
	ID      string    `json:"id"`
	Seq     int64     `json:"seq"`
	Kind    AlertKind `json:"msg_type"`
	RunID   RunID     `json:"run_id"`     // empty unless of a worker
	Session SessionID `json:"session_id"` // empty unless of a session
	Attempt int       `json:"attempt"`    // 0 unless of a worker
	Cause   string    `json:"cause"`
	// Payload is a JSON object. Of a worker it has worker_id, worker_name, attempt, repo and what the kind adds.
	Payload json.RawMessage `json:"payload"`

	OpenedAt     time.Time  `json:"opened_at"`
	ResolvedAt   *time.Time `json:"resolved_at"`
	AckedAt      *time.Time `json:"acked_at"`
	AckedBy      string     `json:"acked_by"`
	SnoozedUntil *time.Time `json:"snoozed_until"`
	// NotifyCount counts how often somebody was told, and Level how far up it went: 0 the owner, 1 the orchestrator, 2 people.
	NotifyCount int        `json:"notify_count"`
	Level       int        `json:"level"`
	NotifiedAt  *time.Time `json:"notified_at"`
	// Recipients are who was told last; empty means nobody could be.
	Recipients []string `json:"recipients"`
}

// LongestSnooze is how long an alert can be put off at most.
const LongestSnooze = 30 * 24 * time.Hour

// Open says that somebody must still act.
func (a *Alert) Open() bool { return a.ResolvedAt == nil }

// AlertText is what an alert is about, from its payload: the question, the error, the last words. It is untrusted.
func AlertText(payload json.RawMessage) string {
	var p struct {
		Prompt string `json:"prompt_preview"`
		Error  string `json:"error_context"`
		Done   string `json:"completion_message"`
		Text   string `json:"text"` // of a session or the machine
		Silent int    `json:"duration_secs"`
	}
	if json.Unmarshal(payload, &p) != nil {
		return ""
	}
	for _, text := range []string{p.Prompt, p.Error, p.Done, p.Text} {
		if text != "" {
			return text
		}
	}
	if p.Silent > 0 {
		return "nothing moves for " + duration.Short(time.Duration(p.Silent)*time.Second)
	}
	return ""
}

// AlertSessionName is the name of the session that an alert is about, from its payload, which outlives the session; empty when
// it has none.
func AlertSessionName(payload json.RawMessage) string {
	var p struct {
		Name string `json:"session_name"`
	}
	_ = json.Unmarshal(payload, &p) // none is no name
	return p.Name
}

// AlertFilter chooses alerts.
type AlertFilter struct {
	IDs      []string  // none are all
	Run      RunID     // empty is every run
	Session  SessionID // empty is every session
	Host     bool      // only those of the machine
	Repo     string    // fingerprint, with those of the machine; empty is every repository
	Resolved bool      // resolved ones too
	After    int64     // only those with a later Seq
}
