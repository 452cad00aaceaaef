package daemon

import (
	"context"
	"fmt"
	"slices"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/git"
	"agency/internal/policy"
	"agency/internal/sqlite"
	"agency/internal/supervisor"
	"agency/internal/watchdog"
)

// alertOperations serve the operations on alerts and timers.
type alertOperations struct {
	sup    *supervisor.Supervisor
	store  *sqlite.Store
	repos  *git.Repos
	dog    *watchdog.Watchdog
	timers *watchdog.Timers
	policy *policy.Policy
	now    func() time.Time
}

func (o alertOperations) listAlerts(ctx context.Context, req api.ListAlertsRequest) (api.ListAlertsResponse, error) {
	f := agency.AlertFilter{Resolved: req.Resolved}
	if req.Run != "" {
		r, err := o.sup.Records.Resolve(ctx, req.Run)
		if err != nil {
			return api.ListAlertsResponse{}, err
		}
		f.Run = r.ID
	}
	alerts, err := o.alertsOf(ctx, req.Dir, f)
	if err != nil {
		return api.ListAlertsResponse{}, err
	}
	if !req.Resolved {
		alerts = slices.DeleteFunc(alerts, func(a agency.Alert) bool { return !watchdog.Due(&a) })
	}
	if alerts, err = o.seen(ctx, alerts); err != nil {
		return api.ListAlertsResponse{}, err
	}
	named, err := o.named(ctx, alerts)
	return api.ListAlertsResponse{Alerts: named, TickedAt: o.tickedAt()}, err
}

// alertsOf returns the alerts that match a filter in the repository of a directory; with an empty
// dir, in all repositories.
func (o alertOperations) alertsOf(ctx context.Context, dir string, f agency.AlertFilter) ([]agency.Alert, error) {
	if dir != "" {
		repo, err := o.repos.Discover(ctx, dir)
		if err != nil {
			return nil, err
		}
		f.Repo = repo.Fingerprint
		f.Host = repo.Fingerprint == "" // agency was never used here
	}
	return o.store.Alerts(ctx, f)
}

// seen returns those of the alerts that the caller may see: an agent in a sandbox sees only some.
func (o alertOperations) seen(ctx context.Context, alerts []agency.Alert) ([]agency.Alert, error) {
	sees, err := o.policy.Sees(ctx)
	if err != nil || sees == nil {
		return alerts, err
	}
	theirs := []agency.Alert{}
	for i := range alerts {
		if alerts[i].RunID == "" {
			continue
		}
		r, err := o.store.Run(ctx, alerts[i].RunID)
		if err != nil {
			return nil, err
		}
		if ok, err := sees(r); err != nil {
			return nil, err
		} else if ok {
			theirs = append(theirs, alerts[i])
		}
	}
	return theirs, nil
}

// tickedAt returns when the watchdog last looked at anything; nil when it has not yet.
func (o alertOperations) tickedAt() *time.Time {
	if at := o.dog.TickedAt(); !at.IsZero() {
		return new(at.UTC())
	}
	return nil
}

// named adds to alerts the names of their runs and sessions.
func (o alertOperations) named(ctx context.Context, alerts []agency.Alert) ([]api.Alert, error) {
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
			r, err := o.store.Run(ctx, a.RunID)
			if err != nil {
				return nil, err
			}
			names[a.RunID] = r.Ref()
		}
		list = append(list, api.NewAlert(a, names[a.RunID], ""))
	}
	return list, nil
}

func (o alertOperations) ackAlerts(ctx context.Context, req api.AckAlertRequest) (api.AlertsResponse, error) {
	by, err := o.policy.Caller(ctx)
	if err != nil {
		return api.AlertsResponse{}, err
	}
	if req.Dir != "" {
		known, err := o.alertsOf(ctx, req.Dir, agency.AlertFilter{IDs: req.Alerts, Resolved: true})
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
	return o.changeAlerts(ctx, req.Alerts, watchdog.Acknowledge(by, o.now()))
}

func (o alertOperations) snoozeAlerts(ctx context.Context, req api.SnoozeAlertRequest) (api.AlertsResponse, error) {
	snooze, err := watchdog.Snooze(time.Duration(req.ForMS)*time.Millisecond, o.now())
	if err != nil {
		return api.AlertsResponse{}, err
	}
	return o.changeAlerts(ctx, req.Alerts, snooze)
}

// changeAlerts changes alerts, all or none.
func (o alertOperations) changeAlerts(ctx context.Context, ids []string, change watchdog.AlertChange) (api.AlertsResponse, error) {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	changed, err := o.store.ChangeAlerts(ctx, ids, change)
	if err != nil {
		return api.AlertsResponse{}, err
	}
	named, err := o.named(ctx, changed)
	return api.AlertsResponse{Alerts: named}, err
}

func (o alertOperations) explainWatchdog(ctx context.Context, req api.ExplainWatchdogRequest) (api.ExplainWatchdogResponse, error) {
	r, err := o.sup.Records.Resolve(ctx, req.Run)
	if err != nil {
		return api.ExplainWatchdogResponse{}, err
	}
	verdict, err := o.dog.Explain(ctx, r.ID)
	if err != nil {
		return api.ExplainWatchdogResponse{}, fmt.Errorf("explain %s: %w", r.Ref(), err)
	}
	named, err := o.named(ctx, verdict.Open)
	if err != nil {
		return api.ExplainWatchdogResponse{}, err
	}
	resp := api.ExplainWatchdogResponse{Run: runResponse(o.sup, r).Run, Watched: verdict.Watched, Alerts: named, Rules: []api.AlertRule{}}
	for _, rule := range verdict.Rules {
		resp.Rules = append(resp.Rules, api.AlertRule(rule))
	}
	if !verdict.NextAt.IsZero() {
		resp.NextAt = &verdict.NextAt
	}
	return resp, nil
}
