package daemon

import (
	"context"
	"fmt"
	"slices"
	"time"

	"agency"
	"agency/internal/api"
)

func (d *Daemon) listAlerts(ctx context.Context, req api.ListAlertsRequest) (api.ListAlertsResponse, error) {
	f := agency.AlertFilter{Resolved: req.Resolved}
	if req.Run != "" {
		r, err := d.sup.Records.Resolve(ctx, req.Run)
		if err != nil {
			return api.ListAlertsResponse{}, err
		}
		f.Run = r.ID
	}
	alerts, err := d.alertsOf(ctx, req.Dir, f)
	if err != nil {
		return api.ListAlertsResponse{}, err
	}
	if !req.Resolved {
		// When completed work or a failed session has been acknowledged, no action is due. Such an
		// alert stays open until its run is removed or goes on.
		alerts = slices.DeleteFunc(alerts, func(a agency.Alert) bool {
			return a.AckedAt != nil && (a.Kind == agency.AlertComplete || a.Kind == agency.AlertSessionFailed)
		})
	}
	named, err := d.named(ctx, alerts)
	return api.ListAlertsResponse{Alerts: named, TickedAt: d.tickedAt()}, err
}

// alertsOf returns the alerts that match a filter in the repository of a directory; with an empty
// dir, in all repositories.
func (d *Daemon) alertsOf(ctx context.Context, dir string, f agency.AlertFilter) ([]agency.Alert, error) {
	if dir != "" {
		repo, err := d.git.Discover(ctx, dir)
		if err != nil {
			return nil, err
		}
		f.Repo = repo.Fingerprint
		f.Host = repo.Fingerprint == "" // agency was never used here
	}
	return d.store.Alerts(ctx, f)
}

// tickedAt returns when the watchdog last looked at anything; nil when it has not yet.
func (d *Daemon) tickedAt() *time.Time {
	if at := d.dog.TickedAt(); !at.IsZero() {
		return new(at.UTC())
	}
	return nil
}

// named adds to alerts the names of their runs and sessions.
func (d *Daemon) named(ctx context.Context, alerts []agency.Alert) ([]api.Alert, error) {
	list, names := make([]api.Alert, 0, len(alerts)), map[agency.RunID]string{} // a run may have many alerts
	for i := range alerts {
		a := &alerts[i]
		if a.Session != "" {
			list = append(list, api.NewAlert(a, "", agency.AlertSessionName(a.Payload)))
			continue
		}
		if a.RunID == "" {
			list = append(list, api.NewAlert(a, "", ""))
			continue
		}
		if names[a.RunID] == "" {
			r, err := d.store.Run(ctx, a.RunID)
			if err != nil {
				return nil, err
			}
			names[a.RunID] = r.Ref()
		}
		list = append(list, api.NewAlert(a, names[a.RunID], ""))
	}
	return list, nil
}

func (d *Daemon) ackAlerts(ctx context.Context, req api.AckAlertRequest) (api.AlertsResponse, error) {
	by, err := d.policy.Caller(ctx)
	if err != nil {
		return api.AlertsResponse{}, err
	}
	if req.Dir != "" {
		known, err := d.alertsOf(ctx, req.Dir, agency.AlertFilter{IDs: req.Alerts, Resolved: true})
		if err != nil {
			return api.AlertsResponse{}, err
		}
		for _, id := range req.Alerts {
			if !slices.ContainsFunc(known, func(a agency.Alert) bool { return a.ID == id }) {
				return api.AlertsResponse{}, agency.Errorf(agency.CodeAlertNotFound, "there is no alert %q in the repository of %s", id, req.Dir).
					WithHint("agency alerts --all")
			}
		}
	}
	now := d.clock.Now()
	return d.changeAlerts(ctx, req.Alerts, func(a *agency.Alert) agency.EventType {
		if a.AckedAt != nil {
			return ""
		}
		a.AckedAt, a.AckedBy = &now, by
		return agency.AlertAcked
	})
}

func (d *Daemon) snoozeAlerts(ctx context.Context, req api.SnoozeAlertRequest) (api.AlertsResponse, error) {
	wait := time.Duration(req.ForMS) * time.Millisecond
	if wait <= 0 || wait > agency.LongestSnooze {
		return api.AlertsResponse{}, agency.Errorf(agency.CodeUsage, "an alert can be put off for up to 30 days, not for %s", wait).WithHint("for example: agency alerts snooze --for 30m")
	}
	until := d.clock.Now().Add(wait)
	return d.changeAlerts(ctx, req.Alerts, func(a *agency.Alert) agency.EventType {
		a.AckedAt, a.AckedBy, a.SnoozedUntil = nil, "", &until // a snoozed alert is no longer acknowledged
		return agency.AlertSnoozed
	})
}

// changeAlerts changes open alerts, all or none.
func (d *Daemon) changeAlerts(ctx context.Context, ids []string, change func(*agency.Alert) agency.EventType) (api.AlertsResponse, error) {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	changed, err := d.store.ChangeAlerts(ctx, ids, func(a *agency.Alert) (agency.EventType, error) {
		if !a.Open() {
			return "", agency.Errorf(agency.CodeInvalidState, "the alert %s is over", a.ID).WithHint("agency alerts")
		}
		return change(a), nil
	})
	if err != nil {
		return api.AlertsResponse{}, err
	}
	named, err := d.named(ctx, changed)
	return api.AlertsResponse{Alerts: named}, err
}

func (d *Daemon) explainWatchdog(ctx context.Context, req api.ExplainWatchdogRequest) (api.ExplainWatchdogResponse, error) {
	r, err := d.sup.Records.Resolve(ctx, req.Run)
	if err != nil {
		return api.ExplainWatchdogResponse{}, err
	}
	verdict, err := d.dog.Explain(ctx, r.ID)
	if err != nil {
		return api.ExplainWatchdogResponse{}, fmt.Errorf("explain %s: %w", r.Ref(), err)
	}
	named, err := d.named(ctx, verdict.Open)
	if err != nil {
		return api.ExplainWatchdogResponse{}, err
	}
	resp := api.ExplainWatchdogResponse{Run: d.runResponse(r).Run, Watched: verdict.Watched, Alerts: named, Rules: []api.AlertRule{}}
	for _, rule := range verdict.Rules {
		resp.Rules = append(resp.Rules, api.AlertRule(rule))
	}
	if !verdict.NextAt.IsZero() {
		resp.NextAt = &verdict.NextAt
	}
	return resp, nil
}
