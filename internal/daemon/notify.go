package daemon

import (
	"context"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/config"
	"agency/internal/file"
	"agency/internal/notify"
	"agency/internal/policy"
	"agency/internal/sqlite"
)

const (
	// testTimeout bounds how long a test of the channels waits for them.
	testTimeout = time.Minute
	// secretLimit is the largest secret, in bytes.
	secretLimit = 4 << 10
	// mostDead is the largest number of dead letters in a list.
	mostDead = 20
)

// channels is the service of the current notifier: a new configuration replaces it.
type channels struct{ *Daemon }

func (c channels) Start(ctx context.Context) error { return c.notifier.Load().Start(ctx) }
func (c channels) Stop()                           { c.notifier.Load().Stop() }

// newNotifier returns the notifier for the channels of the configuration.
func (d *Daemon) newNotifier(cfg *config.Notify) *notify.Notifier {
	routes := []notify.Route{}
	for _, name := range slices.Sorted(maps.Keys(cfg.Channels)) {
		c := cfg.Channels[name]
		routes = append(routes, notify.Route{Channel: newChannel(name, &c, d.tmux.Terminals, d.clock.Now), Kinds: c.Kinds, Tags: c.Tags, Urgent: c.Urgent})
	}
	return notify.New(notify.Settings{
		Routes: routes, Unrouted: notify.NewTerminals(d.tmux.Show, d.tmux.Terminals), Quiet: cfg.QuietHours, Zone: time.Local, Outbox: d.store, Log: d.Log, Now: d.clock.Now,
		Random: mathrand.Float64,
	})
}

// newChannel returns a channel of the configuration. terminals are those that the bell rings in.
func newChannel(name string, c *config.Channel, terminals func(ctx context.Context) ([]string, error), now func() time.Time) notify.Channel {
	switch c.Kind {
	case config.ChannelDesktop:
		return notify.NewDesktop(name, runtime.GOOS)
	case config.ChannelWebhook:
		return notify.NewWebhook(name, c.URL, secretOf(c), c.AllowPrivate, now)
	case config.ChannelCommand:
		return notify.NewCommand(name, c.Argv)
	default:
		return notify.NewBell(name, terminals)
	}
}

// secretOf returns a function that reads the secret of a webhook each time that it is needed, so
// that a new secret takes effect at once; nil when the webhook has none.
func secretOf(c *config.Channel) func() (string, error) {
	switch {
	case c.SecretEnv != "":
		return func() (string, error) {
			if secret := os.Getenv(c.SecretEnv); secret != "" {
				return secret, nil
			}
			return "", fmt.Errorf("the daemon has no variable %s, the secret", c.SecretEnv)
		}
	case c.SecretFile != "":
		return func() (string, error) {
			// Many users keep their secrets elsewhere and link to them.
			path, err := filepath.EvalSymlinks(c.SecretFile)
			if err != nil {
				return "", fmt.Errorf("read the secret: %w", err)
			}
			data, err := file.ReadRegular(path, secretLimit)
			if err != nil {
				return "", fmt.Errorf("read the secret: %w", err)
			}
			secret := strings.TrimRight(string(data), "\r\n")
			if secret == "" {
				return "", fmt.Errorf("the secret in %s is empty", c.SecretFile)
			}
			return secret, nil
		}
	default:
		return nil
	}
}

// channelOperations serve the operations on the channels to the user.
type channelOperations struct {
	store     *sqlite.Store
	policy    *policy.Policy
	notifier  func() *notify.Notifier // changes with the configuration
	config    func() *config.Config
	reload    func(ctx context.Context)
	untilStop untilStop
	now       func() time.Time
}

// testNotify sends a test to the channels. Only the user may do this: agents send messages.
func (o channelOperations) testNotify(ctx context.Context, req api.TestNotifyRequest) (api.TestNotifyResponse, error) {
	who, err := o.policy.Caller(ctx)
	if err != nil {
		return api.TestNotifyResponse{}, err
	}
	if who != agency.User {
		return api.TestNotifyResponse{}, agency.Errorf(agency.CodePermissionDenied, "a run cannot send notices to the user").
			WithHint("agency messages send --user, or agency report needs_input")
	}
	o.reload(ctx) // a user who has just changed the file wants to test the new settings
	ctx, cancel := o.untilStop(ctx)
	defer cancel()
	ctx, done := context.WithTimeout(ctx, testTimeout)
	defer done()
	now := o.now()
	found, err := o.notifier().Test(ctx, agency.Notice{
		ID: agency.NewNoticeID(now, [10]byte(randomBytes(10))), Title: "a test of agency", Body: "This channel works.", At: now.UTC(),
	}, req.Channel)
	if err != nil {
		return api.TestNotifyResponse{}, err
	}
	resp := api.TestNotifyResponse{Results: make([]api.NotifyResult, 0, len(found))}
	for i := range found {
		f := &found[i]
		resp.Results = append(resp.Results, api.NotifyResult{
			Channel: f.Channel, Sent: f.SentAt != nil, Waiting: !f.Settled(), Tries: f.Tries, Error: f.Error,
		})
	}
	return resp, nil
}

func (o channelOperations) listChannels(ctx context.Context, _ api.Empty) (api.ListChannelsResponse, error) {
	o.reload(ctx)
	if err := o.notifier().Tidy(ctx); err != nil {
		return api.ListChannelsResponse{}, err
	}
	states, err := o.store.ChannelStates(ctx)
	if err != nil {
		return api.ListChannelsResponse{}, err
	}
	dead, err := o.store.DeadDispatches(ctx, mostDead)
	if err != nil {
		return api.ListChannelsResponse{}, err
	}
	for name := range o.config().Notify.Channels {
		if !slices.ContainsFunc(states, func(s agency.ChannelState) bool { return s.Channel == name }) {
			states = append(states, agency.ChannelState{Channel: name})
		}
	}
	slices.SortFunc(states, func(a, b agency.ChannelState) int { return strings.Compare(a.Channel, b.Channel) })
	resp := api.ListChannelsResponse{Channels: make([]api.Channel, 0, len(states)), DeadLetters: make([]api.DeadLetter, 0, len(dead))}
	for _, s := range states {
		resp.Channels = append(resp.Channels, api.Channel{
			Channel: s.Channel, Kind: o.config().Notify.Channels[s.Channel].Kind, Waiting: s.Waiting, Dead: s.Dead,
			NextAt: s.DueAt, SentAt: s.SentAt, FailedAt: s.FailedAt, Error: s.Error,
		})
	}
	for i := range dead {
		l := &dead[i]
		resp.DeadLetters = append(resp.DeadLetters, api.DeadLetter{
			Notice: l.Notice.ID, Channel: l.Channel, Kind: l.Notice.Kind, Title: l.Notice.Title, RunID: l.Notice.RunID,
			Tries: l.Tries, Error: l.Error, DeadAt: *l.DeadAt,
		})
	}
	if until, quiet := o.config().Notify.QuietHours.Until(o.now().Local()); quiet {
		resp.QuietUntil = new(until.UTC())
	}
	return resp, nil
}
