package api

import (
	"encoding/json"
	"time"

	"agency"
	"agency/internal/duration"
)

// ListAlertsRequest selects alerts.
type ListAlertsRequest struct {
	Dir      string `json:"dir,omitempty"`      // only alerts of the repository of this directory; empty means all repositories
	Run      string `json:"run,omitempty"`      // only alerts of one run; empty means all runs
	Resolved bool   `json:"resolved,omitempty"` // also resolved alerts, and acknowledged ones about completed work or failed sessions
}

// ListAlertsResponse holds the alerts, oldest first, and when the watchdog last looked at anything.
type ListAlertsResponse struct {
	Alerts   []Alert    `json:"alerts"`
	TickedAt *time.Time `json:"ticked_at"`
}

// Alert is an episode in which the user or an agent must act on a run, a session or the machine.
type Alert struct {
	ID           string           `json:"id"`
	Seq          int64            `json:"seq"`
	Kind         agency.AlertKind `json:"msg_type"`
	RunID        agency.RunID     `json:"run_id"` // empty unless the alert is about a run, as is run_name
	RunName      string           `json:"run_name"`
	SessionID    agency.SessionID `json:"session_id"`   // empty unless the alert is about a session
	SessionName  string           `json:"session_name"` // from its plan; may be empty
	Attempt      int              `json:"attempt"`      // 0 unless the alert is about a run
	Cause        string           `json:"cause"`        // what distinguishes this episode from others of its kind
	Payload      json.RawMessage  `json:"payload"`      // an object; docs/watchdog.md describes it for each kind
	OpenedAt     time.Time        `json:"opened_at"`
	ResolvedAt   *time.Time       `json:"resolved_at"`
	AckedAt      *time.Time       `json:"acked_at"`
	AckedBy      string           `json:"acked_by"` // the id of a run, or "user"; empty while not acknowledged
	SnoozedUntil *time.Time       `json:"snoozed_until"`
	NotifyCount  int              `json:"notify_count"` // how many times recipients were notified
	Level        int              `json:"level"`        // how far it was escalated: 0 to the owner, 1 to the orchestrator, 2 to the user
	Recipients   []string         `json:"recipients"`   // the recipients of the last notification; empty when there were none
}

// Ref returns the name of the alert's subject for users: that of a run or session, or else the
// session's id, or "host".
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

// NewAlert returns the view of an alert.
func NewAlert(a *agency.Alert, runName, sessionName string) Alert {
	return Alert{
		ID: a.ID, Seq: a.Seq, Kind: a.Kind, RunID: a.RunID, RunName: runName, SessionID: a.Session, SessionName: sessionName, Attempt: a.Attempt, Cause: a.Cause, Payload: a.Payload,
		OpenedAt: a.OpenedAt, ResolvedAt: a.ResolvedAt, AckedAt: a.AckedAt, AckedBy: a.AckedBy, SnoozedUntil: a.SnoozedUntil,
		NotifyCount: a.NotifyCount, Level: a.Level, Recipients: a.Recipients,
	}
}

// AckAlertRequest acknowledges alerts, so that they are not repeated.
type AckAlertRequest struct {
	Dir    string   `json:"dir,omitempty"` // only alerts of the repository of this directory; empty means all repositories
	Alerts []string `json:"alerts"`        // ids
}

// SnoozeAlertRequest postpones alerts.
type SnoozeAlertRequest struct {
	Alerts []string `json:"alerts"` // ids
	ForMS  int64    `json:"for_ms"`
}

// AlertsResponse holds alerts after an operation.
type AlertsResponse struct {
	Alerts []Alert `json:"alerts"`
}

// ExplainWatchdogRequest names one run.
type ExplainWatchdogRequest struct {
	Run string `json:"run" jsonschema:"its name, handle or id"`
}

// ExplainWatchdogResponse describes how the watchdog judges a run.
type ExplainWatchdogResponse struct {
	Run     Run         `json:"run"`
	Watched bool        `json:"watched"` // the run has the tags and the name of a worker
	Rules   []AlertRule `json:"rules"`   // one for each kind, in order of precedence
	Alerts  []Alert     `json:"alerts"`  // the open ones
	NextAt  *time.Time  `json:"next_at"` // when a result may change by time alone; null when none can
}

// AlertRule is the result of one rule for a run.
type AlertRule struct {
	Kind  agency.AlertKind `json:"msg_type"`
	Holds bool             `json:"holds"`
	Why   string           `json:"why"`
}

// AlertText returns the subject of an alert from its payload: the question, the error or the last
// message. It is untrusted.
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
		return "no sign of life for " + duration.Short(time.Duration(p.Silent)*time.Second)
	}
	return ""
}
