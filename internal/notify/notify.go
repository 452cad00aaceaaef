// Package notify sends notices to the user outside of agency: a desktop, a webhook, any command,
// the bell of a terminal. Notices wait in a durable outbox, so a crash loses nothing, and a slow
// channel delays no caller.
package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"agency"
	"agency/internal/duration"
	"agency/internal/plain"
	"agency/internal/service"
)

// Channel is one way to reach the user. Send returns when the notice has arrived, with an error
// when it has not, and soon after ctx ends. It may get the same notice again when agency was killed
// before it recorded the success.
type Channel interface {
	Name() string
	Send(ctx context.Context, n *agency.Notice) error
}

// Route is a channel and the notices that go there.
type Route struct {
	Channel Channel
	Kinds   []string // only notices of these; empty is all
	Tags    []string // only about runs with one of these; empty is all
	Urgent  []string // kinds that do not wait for the end of the quiet hours
}

// takes reports whether a notice goes to the channel.
func (r *Route) takes(n *agency.Notice) bool {
	return (len(r.Kinds) == 0 || slices.Contains(r.Kinds, n.Kind)) &&
		(len(r.Tags) == 0 || slices.ContainsFunc(r.Tags, func(tag string) bool { return slices.Contains(n.Tags, tag) }))
}

func (r *Route) urgent(n *agency.Notice) bool {
	return n.Kind == agency.TestNotice || slices.Contains(r.Urgent, n.Kind)
}

// Outbox stores the notices to send. When a method that writes returns nil, its change survives a
// crash.
type Outbox interface {
	// AddDispatches adds a notice for each channel that does not have the same one already.
	AddDispatches(ctx context.Context, n *agency.Notice, channels []string, due time.Time) error
	// NextDispatch returns a channel's next dispatch; nil when none waits. One that is due after
	// latest counts as due now.
	NextDispatch(ctx context.Context, channel string, now, latest time.Time) (*agency.Dispatch, error)
	// RecordDispatch records the state of a dispatch, unless it is settled.
	RecordDispatch(ctx context.Context, d *agency.Dispatch) error
	// Dispatches returns the dispatches of one notice.
	Dispatches(ctx context.Context, noticeID string) ([]agency.Dispatch, error)
	// TidyOutbox gives up the dispatches of other channels than these, and deletes those settled
	// before a time.
	TidyOutbox(ctx context.Context, channels []string, now, before time.Time) error
	// ReleaseDispatches moves dispatches that are due after now to the time that due returns, if
	// that is earlier.
	ReleaseDispatches(ctx context.Context, now time.Time, due func(d *agency.Dispatch) time.Time) error
	// Changed is closed after the next dispatch is settled, if not before.
	Changed() <-chan struct{}
}

// Settings are the dependencies of a Notifier.
type Settings struct {
	Routes []Route // no two channels share a name
	// Unrouted gets each alert once, and no reminder, while there are no routes. Its notices are not
	// kept: the list of alerts has what it did not show.
	Unrouted Channel
	Quiet    duration.Hours
	Zone     *time.Location // of the quiet hours
	Outbox   Outbox
	Log      *slog.Logger
	Now      func() time.Time
	Random   func() float64 // from 0 up to 1
}

// keep is how long a settled dispatch is kept, dead letters included.
const keep = 7 * 24 * time.Hour

// Notifier sends notices through channels. All methods may be called from several goroutines.
type Notifier struct {
	Settings
	workers []*worker
	// unrouted holds the notices for the channel of that name; when it is full, more are dropped.
	unrouted chan agency.Notice

	running service.Background
}

// New returns a notifier. It sends nothing until Start.
func New(settings Settings) *Notifier {
	n := &Notifier{Settings: settings, unrouted: make(chan agency.Notice, mostUnrouted)}
	for _, r := range settings.Routes {
		n.workers = append(n.workers, &worker{Route: r, wakeups: make(chan struct{}, 1)})
	}
	return n
}

// mostUnrouted is how many notices wait for the channel without a route.
const mostUnrouted = 16

// Start begins to send waiting and new notices. A notice for a channel that is gone becomes a dead
// letter. The second Start does nothing.
func (n *Notifier) Start(ctx context.Context) error { return n.running.Start(ctx, n.begin) }

func (n *Notifier) begin(ctx context.Context) error {
	// A full disk must not keep the daemon from its start: the next start does what this one cannot.
	if err := n.Tidy(ctx); err != nil {
		n.Log.Warn("tidy the outbox", "err", err)
	}
	// It waited for the end of quiet hours, which may have changed.
	now := n.Now()
	if err := n.Outbox.ReleaseDispatches(ctx, now, func(d *agency.Dispatch) time.Time { return released(d, now) }); err != nil {
		n.Log.Warn("release what waited for the end of quiet hours", "err", err)
	}
	for _, l := range n.workers {
		n.running.Go(func() { n.serve(ctx, l) })
	}
	if len(n.workers) == 0 && n.Unrouted != nil {
		n.running.Go(func() { n.serveUnrouted(ctx) })
	}
	return nil
}

// serveUnrouted shows notices that have no route, until ctx ends.
func (n *Notifier) serveUnrouted(ctx context.Context) {
	for {
		select {
		case notice := <-n.unrouted:
			sending, cancel := context.WithTimeout(ctx, sendTimeout)
			if err := n.Unrouted.Send(sending, &notice); err != nil && ctx.Err() == nil {
				n.Log.Warn("notice not shown", "notice", notice.ID, "err", err)
			}
			cancel()
		case <-ctx.Done():
			return
		}
	}
}

// Tidy deletes dispatches settled long ago, and gives up those of channels that are gone.
func (n *Notifier) Tidy(ctx context.Context) error {
	now := n.Now()
	return n.Outbox.TidyOutbox(ctx, n.names(), now, now.Add(-keep))
}

// Stop stops the sending and waits until it has stopped. A send in progress is cut off, and begins
// again after the next Start. Stop may be called at any time, and twice.
func (n *Notifier) Stop() { n.running.Stop() }

func (n *Notifier) names() []string {
	names := make([]string, 0, len(n.workers))
	for _, l := range n.workers {
		names = append(names, l.Channel.Name())
	}
	return names
}

// Enqueue passes a notice to the channels that take it and returns their names. It waits only for
// the disk: when it returns, the notice will be sent, whatever happens to the process. The same
// notice again changes nothing.
func (n *Notifier) Enqueue(ctx context.Context, notice agency.Notice) (channels []string, err error) {
	if _, quiet := n.Quiet.Until(n.Now().In(n.Zone)); len(n.workers) == 0 && n.Unrouted != nil && !quiet && !notice.Reminder {
		select {
		case n.unrouted <- notice:
		default:
		}
	}
	return n.enqueue(ctx, notice, func(l *worker) bool { return l.takes(&notice) })
}

func (n *Notifier) enqueue(ctx context.Context, notice agency.Notice, takes func(l *worker) bool) (channels []string, err error) {
	if notice.Tags == nil {
		notice.Tags = []string{}
	}
	if notice.Payload == nil {
		notice.Payload = json.RawMessage("{}")
	}
	workers := []*worker{}
	for _, l := range n.workers {
		if takes(l) {
			workers, channels = append(workers, l), append(channels, l.Channel.Name())
		}
	}
	if len(workers) == 0 {
		return nil, nil
	}
	if err := n.Outbox.AddDispatches(ctx, &notice, channels, n.Now()); err != nil {
		return nil, fmt.Errorf("enqueue notice %s: %w", notice.ID, err)
	}
	for _, l := range workers {
		l.wake()
	}
	return channels, nil
}

// Test sends a notice to one channel, or to all when channel is empty, regardless of the rules and
// the quiet hours, and waits until each has it or gave up. If ctx ends first it returns their state
// so far. An unknown channel is E_USAGE.
func (n *Notifier) Test(ctx context.Context, notice agency.Notice, channel string) ([]agency.Dispatch, error) {
	notice.Kind = agency.TestNotice
	sent, err := n.enqueue(ctx, notice, func(l *worker) bool { return channel == "" || l.Channel.Name() == channel })
	if err != nil {
		return nil, err
	}
	if len(sent) == 0 {
		return nil, noChannel(channel, n.names())
	}
	for {
		changed := n.Outbox.Changed()
		// The state is worth returning also after ctx has ended.
		found, err := n.Outbox.Dispatches(context.WithoutCancel(ctx), notice.ID)
		if err != nil {
			return nil, fmt.Errorf("look after notice %s: %w", notice.ID, err)
		}
		if ctx.Err() != nil || !slices.ContainsFunc(found, func(d agency.Dispatch) bool { return !d.Settled() }) {
			return found, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

func noChannel(channel string, known []string) error {
	if len(known) == 0 {
		return agency.Errorf(agency.CodeUsage, "no channel is configured").
			WithHint(`add one to the file that "agency config path" names: [notify.channels.desk] and kind = "desktop" below it; it takes effect within seconds`)
	}
	err := agency.Errorf(agency.CodeUsage, "there is no channel %q", channel)
	if near := plain.Nearest(channel, known); near != "" {
		return err.WithHint("did you mean: agency notify test %s", near)
	}
	return err.WithHint("agency notify ls")
}
