package watchdog

import (
	"time"

	"agency"
	"agency/internal/duration"
)

// Due reports whether an open alert asks for action. When completed work or a failed session has
// been acknowledged, no action is due: such an alert stays open until its run is removed or goes
// on.
func Due(a *agency.Alert) bool {
	return a.AckedAt == nil || a.Kind != agency.AlertComplete && a.Kind != agency.AlertSessionFailed
}

// AlertChange edits an alert and returns the event of that, or refuses. An empty event
// means that nothing changed.
type AlertChange = func(a *agency.Alert) (agency.EventType, error)

// Acknowledge returns the change by which a user or an agent acknowledges an alert.
func Acknowledge(by string, at time.Time) AlertChange {
	return whileOpen(func(a *agency.Alert) agency.EventType {
		if a.AckedAt != nil {
			return ""
		}
		a.AckedAt, a.AckedBy = &at, by
		return agency.AlertAcked
	})
}

// Snooze returns the change that puts an alert off, so that it is notified again later. A snoozed
// alert is no longer acknowledged.
func Snooze(wait time.Duration, now time.Time) (AlertChange, error) {
	if wait <= 0 || wait > agency.LongestSnooze {
		return nil, agency.Errorf(agency.CodeUsage, "you can snooze an alert for up to 30 days, not for %s", duration.Text(wait)).WithHint("for example: agency alerts snooze --for 30m")
	}
	until := now.Add(wait)
	return whileOpen(func(a *agency.Alert) agency.EventType {
		a.AckedAt, a.AckedBy, a.SnoozedUntil = nil, "", &until
		return agency.AlertSnoozed
	}), nil
}

// whileOpen returns a change that refuses an alert that is over.
func whileOpen(change func(a *agency.Alert) agency.EventType) AlertChange {
	return func(a *agency.Alert) (agency.EventType, error) {
		if !a.Open() {
			return "", agency.Errorf(agency.CodeInvalidState, "the alert %s is over", a.ID).WithHint("agency alerts")
		}
		return change(a), nil
	}
}
