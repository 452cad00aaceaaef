package api

import (
	"encoding/json"
	"time"

	"agency"
)

// ListAlertsRequest chooses alerts.
type ListAlertsRequest struct {
	Dir      string `json:"dir,omitempty"`      // only those of the repository of this directory; empty is every repository
	Run      string `json:"run,omitempty"`      // only those of one run; empty is every run
	Resolved bool   `json:"resolved,omitempty"` // resolved ones too, and offers of work that were acknowledged
}

// ListAlertsResponse is the alerts, oldest first, and when the watchdog last looked at anything.
type ListAlertsResponse struct {
	Alerts   []Alert    `json:"alerts"`
	TickedAt *time.Time `json:"ticked_at"`
}

// Alert is an episode in which somebody must act on a run, a session or the machine.
type Alert struct {
	ID           string           `json:"id"`
	Seq          int64            `json:"seq"`
	Kind         agency.AlertKind `json:"msg_type"`
	RunID        agency.RunID     `json:"run_id"` // empty unless it is about a run, and so is run_name
	RunName      string           `json:"run_name"`
	SessionID    agency.SessionID `json:"session_id"`   // empty unless it is about a session
	SessionName  string           `json:"session_name"` // of its plan; may be empty
	Attempt      int              `json:"attempt"`      // 0 unless it is about a run
	Cause        string           `json:"cause"`        // what tells this episode from others of its kind
	Payload      json.RawMessage  `json:"payload"`      // an object; docs/watchdog.md says what each kind carries
	OpenedAt     time.Time        `json:"opened_at"`
	ResolvedAt   *time.Time       `json:"resolved_at"`
	AckedAt      *time.Time       `json:"acked_at"`
	AckedBy      string           `json:"acked_by"` // the id of a run, or "user"; empty when nobody did
	SnoozedUntil *time.Time       `json:"snoozed_until"`
	NotifyCount  int              `json:"notify_count"` // how often somebody was told
	Level        int              `json:"level"`        // how far up: 0 the owner, 1 the orchestrator, 2 people
	Recipients   []string         `json:"recipients"`   // who was told last; empty when there was nobody
}

// Ref is how people call what the alert is about: a run, a session by its name or else its id, or the host.
func (a *Alert) Ref() string {
	switch {
	case a.RunName != "":
		return a.RunName
	case a.SessionName != "":
		return a.SessionName
	case a.SessionID != "":
		return string(a.SessionID)
	default:
		return "host"
	}
}

// NewAlert is the view of an alert.
func NewAlert(a *agency.Alert, runName, sessionName string) Alert {
	return Alert{
		ID: a.ID, Seq: a.Seq, Kind: a.Kind, RunID: a.RunID, RunName: runName, SessionID: a.Session, SessionName: sessionName, Attempt: a.Attempt, Cause: a.Cause, Payload: a.Payload,
		OpenedAt: a.OpenedAt, ResolvedAt: a.ResolvedAt, AckedAt: a.AckedAt, AckedBy: a.AckedBy, SnoozedUntil: a.SnoozedUntil,
		NotifyCount: a.NotifyCount, Level: a.Level, Recipients: a.Recipients,
	}
}

// AckAlertRequest says that somebody has seen alerts; they are not repeated.
type AckAlertRequest struct {
	Dir    string   `json:"dir,omitempty"` // only alerts of the repository of this directory; empty is every repository
	Alerts []string `json:"alerts"`        // ids
}

// SnoozeAlertRequest puts alerts off.
type SnoozeAlertRequest struct {
	Alerts []string `json:"alerts"` // ids
	ForMS  int64    `json:"for_ms"`
}

// AlertsResponse is alerts after an operation.
type AlertsResponse struct {
	Alerts []Alert `json:"alerts"`
}

// ExplainWatchdogRequest names one run.
type ExplainWatchdogRequest struct {
	Run string `json:"run" jsonschema:"its name, handle, id, or a unique prefix of one of these"`
}

// ExplainWatchdogResponse says what the watchdog makes of a run.
type ExplainWatchdogResponse struct {
	Run     Run         `json:"run"`
	Watched bool        `json:"watched"` // it has the tags and the name of a worker
	Rules   []AlertRule `json:"rules"`   // one for each kind, in their order of precedence
	Alerts  []Alert     `json:"alerts"`  // open ones
	NextAt  *time.Time  `json:"next_at"` // when time alone may change something; null when it cannot
}

// AlertRule is what one rule says of a run.
type AlertRule struct {
	Kind  agency.AlertKind `json:"msg_type"`
	Holds bool             `json:"holds"`
	Why   string           `json:"why"`
}
