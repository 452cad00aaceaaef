package page

import (
	"context"
	"time"

	"agency"
	"agency/internal/api"
)

// How long alerts are snoozed.
const (
	Snooze     = time.Hour
	SnoozeOver = time.Millisecond // ends a snooze
)

// SnoozeRun snoozes the open alerts of a run for a time. It returns E_INVALID_STATE if the run has none.
func SnoozeRun(ctx context.Context, d *Daemon, run string, wait time.Duration) error {
	open, err := d.ListAlerts(ctx, api.ListAlertsRequest{Run: run})
	if err != nil {
		return err
	}
	ids := []string{}
	for i := range open.Alerts {
		if open.Alerts[i].AckedAt == nil { // else the user has dealt with it
			ids = append(ids, open.Alerts[i].ID)
		}
	}
	if len(ids) == 0 {
		return agency.Errorf(agency.CodeInvalidState, "there is no alert to snooze")
	}
	_, err = d.SnoozeAlerts(ctx, api.SnoozeAlertRequest{Alerts: ids, ForMS: wait.Milliseconds()})
	return err
}
