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

// workers provides the watchdog with runs.
type workers struct {
	sup *supervisor.Supervisor
	led func(ctx context.Context, r *agency.Run) (bool, error)
}

func (w workers) Worker(ctx context.Context, id agency.RunID) (*watchdog.Worker, error) {
	r, status, drafts, err := w.sup.Query.Worker(ctx, id)
	if err != nil {
		return nil, err
	}
	led, err := w.led(ctx, r)
	return &watchdog.Worker{Run: r, Status: status, OutputAt: drafts, Led: led}, err
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

// alertSink delivers alerts to inboxes, and to the user's channels when the user should act.
type alertSink struct {
	sup      *supervisor.Supervisor
	notifier func() *notify.Notifier // changes with the configuration
	tag      func() string           // the tag of orchestrators
	now      func() time.Time
}

func (t alertSink) Deliver(ctx context.Context, a *agency.Alert, of *watchdog.Worker) ([]string, error) {
	r := of.Run
	recipients, err := t.sup.Inbox.SendAlert(ctx, a, r, t.tag())
	if err != nil {
		return recipients, err
	}
	return t.notify(ctx, a, recipients, &agency.Notice{
		Title: r.Ref() + " " + a.Kind.Words(), RunID: r.ID, RunName: r.Ref(), Repo: r.Repo.Root, Tags: r.Tags,
	})
}

// DeliverSession delivers an alert about a session, which has no tags.
func (t alertSink) DeliverSession(ctx context.Context, a *agency.Alert, s *agency.Session) ([]string, error) {
	recipients, err := t.sup.Inbox.SendSessionAlert(ctx, a, s, t.tag())
	if err != nil {
		return recipients, err
	}
	return t.notify(ctx, a, recipients, &agency.Notice{Title: session.Title(s) + " " + a.Kind.Words(), Repo: s.Repo.Root})
}

// DeliverHost delivers an alert about the machine to the user.
func (t alertSink) DeliverHost(ctx context.Context, a *agency.Alert) ([]string, error) {
	recipients, err := t.sup.Inbox.SendHostAlert(ctx, a)
	if err != nil {
		return recipients, err
	}
	return t.notify(ctx, a, recipients, &agency.Notice{Title: "the disk of " + a.Cause + " " + a.Kind.Words()})
}

// notify sends an alert to the user's channels, if the user is among the recipients, and adds the
// channels to them. n has the subject of the alert.
func (t alertSink) notify(ctx context.Context, a *agency.Alert, recipients []string, n *agency.Notice) ([]string, error) {
	if !slices.Contains(recipients, agency.User) {
		return recipients, nil
	}
	// The id names this notification, so that repeating it after a crash does no harm.
	n.ID, n.Kind, n.Body, n.Payload, n.At = fmt.Sprintf("%s-%d", a.ID, a.NotifyCount+1), string(a.Kind), api.AlertText(a.Payload), a.Payload, t.now()
	n.Reminder = slices.Contains(a.Recipients, agency.User)
	channels, err := t.notifier().Enqueue(ctx, *n)
	for _, channel := range channels {
		recipients = append(recipients, "channel "+channel)
	}
	return recipients, err
}

// watchdogSettings returns the settings of the watchdog from the configuration, which has checked
// the expressions.
func watchdogSettings(c *config.Watchdog) watchdog.Settings {
	s := watchdog.Settings{
		Poll: c.PollInterval, StuckIntervals: c.StuckIntervals, StallThreshold: c.StallThreshold, WorkerTags: c.WorkerTags, PreviewLines: c.PreviewLines,
	}
	if c.WorkerPattern != "" {
		s.WorkerPattern = regexp.MustCompile(c.WorkerPattern)
	}
	return s
}

// errorPatterns returns the patterns for errors in output from the configuration, which has checked
// them.
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

func (d *Daemon) newWatchdog() *watchdog.Watchdog {
	return watchdog.New(watchdog.Deps{
		Runs: workers{d.sup, d.agents().Leads}, Store: d.store, Sink: alertSink{d.sup, d.notifier.Load, func() string { return d.active.config().Watchdog.OrchestratorTag }, d.clock.Now},
		Disks: func() ([]agency.Disk, error) {
			d.store.KeepRoom() // if a disk had no space for it before, and has it now
			return d.disks.Look()
		},
		Log: d.Log, Now: d.clock.Now, Elapsed: d.clock.Elapsed,
		NewID: func() string { return agency.NewAlertID(d.clock.Now(), [10]byte(randomBytes(10))) },
	}, watchdogSettings(&d.Config.Watchdog))
}
