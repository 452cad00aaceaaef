package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"agency"
	"agency/internal/clock"
	"agency/internal/config"
	"agency/internal/notify"
	"agency/internal/sqlite"
	"agency/internal/supervisor"
)

// reloading returns a daemon that only sends notices, and a function that sets its configuration.
func reloading(t *testing.T, outbox string) (d *Daemon, says func(*config.Config)) {
	t.Helper()
	store, err := sqlite.Open(t.Context(), outbox, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	cfg := &config.Config{Home: t.TempDir()}
	next := cfg
	d = &Daemon{Config: cfg, Log: slog.New(slog.DiscardHandler), Load: func() (*config.Config, error) { return next, nil }, store: store}
	began := time.Now()
	d.clock = clock.New(time.Now, func() time.Duration { return time.Since(began) })
	d.sup = supervisor.New(supervisor.Deps{Store: store, Log: d.Log, Now: time.Now}, supervisor.Settings{})
	d.active.begin(cfg, began)
	d.active.stamp.size = 1
	d.notifier.Store(d.newNotifier(&cfg.Notify))
	if err := d.notifier.Load().Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.notifier.Load().Stop() })
	return d, func(cfg *config.Config) {
		cfg.Home = d.Config.Home
		next, d.active.stamp = cfg, stamp{size: 1}
	}
}

func trueChannel() *config.Config {
	return &config.Config{Notify: config.Notify{Channels: map[string]config.Channel{"tell": {Kind: config.ChannelCommand, Argv: []string{"true"}}}}}
}

// arrives sends a test through the current channels.
func arrives(t *testing.T, d *Daemon) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	found, err := d.notifier.Load().Test(ctx, agency.Notice{ID: "t_1", Title: "a test"}, "tell")
	if err != nil || len(found) != 1 || found[0].SentAt == nil {
		t.Errorf("%+v, %v", found, err)
	}
}

// The client that requested the reload may disconnect before it is done: the channels keep running.
func TestReloadOutlivesItsClient(t *testing.T) {
	t.Parallel()
	d, says := reloading(t, filepath.Join(t.TempDir(), "agency.db"))
	says(trueChannel())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d.reload(ctx)
	arrives(t, d)
}

// refusing is an outbox that cannot be used for a while.
type refusing struct {
	*sqlite.Store
	err error
}

func (r *refusing) TidyOutbox(ctx context.Context, channels []string, now, before time.Time) error {
	if r.err != nil {
		return r.err
	}
	return r.Store.TidyOutbox(ctx, channels, now, before)
}

// Channels that could not be started are started at a later check, even if the file is the same.
func TestReloadTriesAgain(t *testing.T) {
	t.Parallel()
	d, _ := reloading(t, filepath.Join(t.TempDir(), "agency.db"))
	d.reload(t.Context())
	outbox := &refusing{d.store, errors.New("the disk is full")}
	before := d.notifier.Swap(notify.New(notify.Settings{
		Routes: []notify.Route{{Channel: notify.NewCommand("tell", []string{"true"})}}, Zone: time.UTC, Outbox: outbox, Log: d.Log,
		Now: time.Now, Random: func() float64 { return 0.5 },
	}))
	before.Stop()
	d.startChannels(t.Context())
	d.reload(t.Context())
	outbox.err = nil
	d.reload(t.Context())
	arrives(t, d)
}

// A changed file that the system failed to read is applied by a later look, even if the file is the
// same.
func TestReloadReadsAgain(t *testing.T) {
	t.Parallel()
	d, says := reloading(t, filepath.Join(t.TempDir(), "agency.db"))
	says(trueChannel())
	load := d.Load
	var broken error
	d.Load = func() (*config.Config, error) {
		if broken != nil {
			return nil, broken
		}
		return load()
	}
	var log strings.Builder
	d.Log = slog.New(slog.NewTextHandler(&log, nil))
	for _, broken = range []error{fmt.Errorf("config.toml: cannot be read: %w", syscall.EMFILE), nil} {
		for range 2 {
			d.reload(t.Context())
		}
		if got := d.needsReload(); got != (broken != nil) {
			t.Errorf("after %v: the next look reads it: %v", broken, got)
		}
	}
	arrives(t, d)
	if n := strings.Count(log.String(), "cannot be read"); n != 1 {
		t.Errorf("logged %d times: %s", n, &log)
	}
}
