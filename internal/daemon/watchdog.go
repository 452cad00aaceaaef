package daemon

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/config"
	"agency/internal/notify"
	"agency/internal/session"
	"agency/internal/supervisor"
	"agency/internal/supervisor/observe"
	"agency/internal/watchdog"
)

// workers gives the watchdog the engine.
type workers struct {
	sup *supervisor.Supervisor
	led func(ctx context.Context, r *agency.Run) (bool, error)
}

func (w workers) Worker(ctx context.Context, id agency.RunID) (*watchdog.Worker, error) {
	r, status, news, err := w.sup.Query.Worker(ctx, id)
	if err != nil {
		return nil, err
	}
	led, err := w.led(ctx, r)
	return &watchdog.Worker{Run: r, Status: status, OutputAt: news, Led: led}, err
}

func (w workers) Activity(of *watchdog.Worker) agency.Activity {
	return w.sup.Terminals.Activity(of.Run)
}

func (w workers) Detail(ctx context.Context, of *watchdog.Worker, lines int) watchdog.Detail {
	d := watchdog.Detail{Output: w.sup.Terminals.Preview(ctx, of.Run, lines)}
	if git := w.sup.Work.Facts(ctx, of.Run); git != nil {
		d.Dirty, d.Commits = git.Dirty || git.Untracked > 0, git.Ahead
	}
	return d
}

func (w workers) Attached(ctx context.Context, of *watchdog.Worker) bool {
	return w.sup.Terminals.Attached(ctx, of.Run)
}

// alertSink brings alerts to inboxes, and to the channels of the person when it is the person who should act.
type alertSink struct {
	sup      *supervisor.Supervisor
	notifier func() *notify.Notifier // it changes with the configuration
	tag      func() string           // of orchestrators
	now      func() time.Time
}

func (t alertSink) Deliver(ctx context.Context, a *agency.Alert, of *watchdog.Worker) ([]string, error) {
	r := of.Run
	recipients, err := t.sup.Inbox.TellAlert(ctx, a, r, t.tag())
	if err != nil {
		return recipients, err
	}
	return t.notify(ctx, a, recipients, &agency.Notice{
		Title: r.Ref() + " " + a.Kind.Words(), RunID: r.ID, RunName: r.Ref(), Repo: r.Repo.Root, Tags: r.Tags,
	})
}

// DeliverSession is Deliver about a session, which has no tags.
func (t alertSink) DeliverSession(ctx context.Context, a *agency.Alert, s *agency.Session) ([]string, error) {
	recipients, err := t.sup.Inbox.TellSessionAlert(ctx, a, s, t.tag())
	if err != nil {
		return recipients, err
	}
	return t.notify(ctx, a, recipients, &agency.Notice{Title: session.Title(s) + " " + a.Kind.Words(), Repo: s.Repo.Root})
}

// DeliverHost is Deliver about the machine, which the person looks after.
func (t alertSink) DeliverHost(ctx context.Context, a *agency.Alert) ([]string, error) {
	recipients, err := t.sup.Inbox.TellHostAlert(ctx, a)
	if err != nil {
		return recipients, err
	}
	return t.notify(ctx, a, recipients, &agency.Notice{Title: "the disk of " + a.Cause + " " + a.Kind.Words()})
}

// notify brings an alert to the channels of the person, if it is among the recipients, and adds them. What the notice is about is in it.
func (t alertSink) notify(ctx context.Context, a *agency.Alert, recipients []string, n *agency.Notice) ([]string, error) {
	if !slices.Contains(recipients, agency.User) {
		return recipients, nil
	}
	// The id is that of this telling, so that repeating it after a crash does no harm.
	n.ID, n.Kind, n.Body, n.Payload, n.At = fmt.Sprintf("%s-%d", a.ID, a.Told+1), string(a.Kind), agency.AlertText(a.Payload), a.Payload, t.now()
	channels, err := t.notifier().Enqueue(ctx, *n)
	for _, channel := range channels {
		recipients = append(recipients, "channel "+channel)
	}
	return recipients, err
}

// watchdogSettings are what the configuration says about the watchdog. It refuses bad expressions itself.
func watchdogSettings(c *config.Watchdog) watchdog.Settings {
	s := watchdog.Settings{
		Poll: c.PollInterval, StuckIntervals: c.StuckIntervals, StallThreshold: c.StallThreshold, WorkerTags: c.WorkerTags, PreviewLines: c.PreviewLines,
	}
	if c.WorkerPattern != "" {
		s.WorkerPattern = regexp.MustCompile(c.WorkerPattern)
	}
	return s
}

// errorPatterns are what the configuration calls errors in output. It refuses bad expressions itself.
func errorPatterns(c *config.Config) *observe.ErrorPatterns {
	compile := func(patterns []string) []*regexp.Regexp {
		compiled := make([]*regexp.Regexp, 0, len(patterns))
		for _, pattern := range patterns {
			compiled = append(compiled, regexp.MustCompile("^(?:"+pattern+")"))
		}
		return compiled
	}
	p := &observe.ErrorPatterns{Any: compile(c.Watchdog.ErrorPatterns), Presets: map[string][]*regexp.Regexp{}}
	for name := range c.Presets {
		p.Presets[name] = compile(c.Presets[name].ErrorPatterns)
	}
	return p
}

// lookAtDisks looks at the disks for the watchdog. It also takes the reserve for the record, if a disk had no room for it
// before and has it now.
func (d *Daemon) lookAtDisks() ([]agency.Disk, error) {
	d.store.KeepRoom()
	return d.disks.Look()
}

func (d *Daemon) newWatchdog() *watchdog.Watchdog {
	return watchdog.New(watchdog.Deps{
		Runs: workers{d.sup, d.agents().Leads}, Store: d.store, Sink: alertSink{d.sup, d.notifier.Load, func() string { return d.active.config().Watchdog.OrchestratorTag }, d.clock.Now},
		Disks: d.lookAtDisks, Log: d.Log, Now: d.clock.Now, Elapsed: d.clock.Elapsed,
		NewID: func() string { return agency.NewAlertID(d.clock.Now(), [10]byte(randomBytes(10))) },
	}, watchdogSettings(&d.Config.Watchdog))
}

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
		// Work or an end that somebody has seen waits for nobody. Work is not over before its run is removed or goes on.
		alerts = slices.DeleteFunc(alerts, func(a agency.Alert) bool {
			return a.AckedAt != nil && (a.Kind == agency.AlertComplete || a.Kind == agency.AlertSessionFailed)
		})
	}
	named, err := d.named(ctx, alerts)
	return api.ListAlertsResponse{Alerts: named, TickedAt: d.tickedAt()}, err
}

// alertsOf are the alerts that a filter chooses of the repository of a directory; without one of every repository.
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

// tickedAt is when the watchdog last looked at anything; nil when it did not yet.
func (d *Daemon) tickedAt() *time.Time {
	if at := d.dog.TickedAt(); !at.IsZero() {
		return new(at.UTC())
	}
	return nil
}

// named adds the names of their runs and sessions to alerts.
func (d *Daemon) named(ctx context.Context, alerts []agency.Alert) ([]api.Alert, error) {
	list, names := make([]api.Alert, 0, len(alerts)), map[agency.RunID]string{} // a run may have had many alerts
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
		a.AckedAt, a.AckedBy, a.SnoozedUntil = nil, "", &until // who wants it back has not done with it
		return agency.AlertSnoozed
	})
}

// changeAlerts changes alerts that are open, all or none.
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
