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
	Alerts   []Alert    `json:"alerts"`    // the oldest first
	TickedAt *time.Time `json:"ticked_at"` // when the watchdog last looked at anything; null before that
}

// Alert is an episode in which the user or an agent must act on a run, a session or the machine.
type Alert struct {
	ID           string           `json:"id"`            // a_ and a ULID
	Seq          int64            `json:"seq"`           // the order in which alerts were opened
	Kind         agency.AlertKind `json:"msg_type"`      // why a user or agent must act
	RunID        agency.RunID     `json:"run_id"`        // the run that it is about; empty unless it is about a run
	RunName      string           `json:"run_name"`      // the name or handle of that run; empty likewise
	SessionID    agency.SessionID `json:"session_id"`    // the session that it is about; empty unless it is about a session
	SessionName  string           `json:"session_name"`  // the name of that session, from its plan; may be empty
	Attempt      int              `json:"attempt"`       // the attempt that it is about; 0 unless it is about a run
	Cause        string           `json:"cause"`         // what distinguishes this episode from others of its kind
	Payload      json.RawMessage  `json:"payload"`       // an object; docs/watchdog.md describes it for each kind
	OpenedAt     time.Time        `json:"opened_at"`     // when it was opened
	ResolvedAt   *time.Time       `json:"resolved_at"`   // when its cause was over; null while it is open
	AckedAt      *time.Time       `json:"acked_at"`      // when it was acknowledged; null while it is not, and after it was postponed
	AckedBy      string           `json:"acked_by"`      // who acknowledged it: the id of a run, or "user"; empty while it is not
	SnoozedUntil *time.Time       `json:"snoozed_until"` // when recipients are notified again, after it was postponed; null while it is not
	NotifyCount  int              `json:"notify_count"`  // how many times recipients were notified
	Level        int              `json:"level"`         // how far it was escalated: 0 to the owner, 1 to the orchestrator, 2 to the user
	Recipients   []string         `json:"recipients"`    // the recipients of the last notification; empty when there were none
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
	Alerts []string `json:"alerts"`        // their ids
}

// SnoozeAlertRequest postpones alerts.
type SnoozeAlertRequest struct {
	Alerts []string `json:"alerts"` // their ids
	ForMS  int64    `json:"for_ms"` // for how long, in milliseconds, at most 30 days
}

// AlertsResponse holds alerts after an operation.
type AlertsResponse struct {
	Alerts []Alert `json:"alerts"` // those of the request, as they are afterwards
}

// ExplainWatchdogRequest names one run.
type ExplainWatchdogRequest struct {
	Run string `json:"run" jsonschema:"its name, handle or id"`
}

// ExplainWatchdogResponse describes how the watchdog judges a run.
type ExplainWatchdogResponse struct {
	Run     Run         `json:"run"`     // as it is now
	Watched bool        `json:"watched"` // the run has the tags and the name of a worker
	Rules   []AlertRule `json:"rules"`   // one for each kind, in order of precedence
	Alerts  []Alert     `json:"alerts"`  // the open ones
	NextAt  *time.Time  `json:"next_at"` // when a result may change by time alone; null when none can
}

// AlertRule is the result of one rule for a run.
type AlertRule struct {
	Kind  agency.AlertKind `json:"msg_type"` // the alert that the rule opens
	Holds bool             `json:"holds"`    // the rule holds now
	Why   string           `json:"why"`      // the reason in words; may quote the agent: untrusted
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
