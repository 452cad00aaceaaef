package daemon

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"sync"
	"syscall"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/config"
)

// configEvery is how often the daemon looks whether its configuration changed. A look is one system call, and finds what a watch
// would miss: a folder that was not there, a link that leads elsewhere now, a file system that tells nothing.
const configEvery = 2 * time.Second

// active is the configuration that the daemon goes by now.
type active struct {
	mu      sync.Mutex
	cfg     *config.Config
	stamp   stamp
	at      time.Time // when cfg was read
	problem error     // why a newer file is not used

	reading sync.Mutex // held by who reads and applies a file, so that whoever asks after it finds it applied
	mute    bool       // under reading: the channels could not be started yet
}

// stamp tells one state of a file from another; zero is no file.
type stamp struct {
	size, modified int64
	inode          uint64
}

func stampOf(path string) stamp {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}
	}
	s := stamp{size: info.Size(), modified: info.ModTime().UnixNano()}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		s.inode = stat.Ino
	}
	return s
}

func (a *active) begin(cfg *config.Config, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cfg, a.at = cfg, at // without a stamp: the file may have changed since, so it is read once more
}

func (a *active) config() *config.Config {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.cfg
}

// state is how it stands, for people.
func (a *active) state(started *config.Config) api.DaemonConfig {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := api.DaemonConfig{Path: a.cfg.Path, ReadAt: a.at.UTC(), NeedsRestart: []string{}}
	if a.problem != nil {
		s.Problem = agency.AsError(a.problem).Message
	}
	if a.cfg.Tmux != started.Tmux {
		s.NeedsRestart = append(s.NeedsRestart, "tmux.socket")
	}
	return s
}

// watchConfig looks after the configuration file until ctx ends.
func (d *Daemon) watchConfig(ctx context.Context) {
	if d.Load == nil {
		return
	}
	look := time.NewTicker(configEvery)
	defer look.Stop()
	for {
		d.reload(ctx)
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

// reload takes over what a changed file says, and returns when it holds. A bad one changes nothing but the answer of doctor, and is
// told once. Who asked for it may go away meanwhile: it is done all the same.
func (d *Daemon) reload(ctx context.Context) {
	if d.Load == nil {
		return
	}
	ctx = context.WithoutCancel(ctx)
	a := &d.active
	a.reading.Lock()
	defer a.reading.Unlock()
	now := stampOf(d.Config.Path) // before it is read, so that a later change is seen
	a.mu.Lock()
	old, same := a.cfg, now == a.stamp
	a.stamp = now
	a.mu.Unlock()
	if same {
		if a.mute {
			d.startChannels(ctx)
		}
		return
	}
	cfg, err := d.Load()
	if err == nil && (cfg.Home != d.Config.Home || cfg.Socket != d.Config.Socket) {
		err = fmt.Errorf("it belongs to another data root, %s", cfg.Home)
	}
	a.mu.Lock()
	a.problem = err
	if err == nil {
		a.cfg, a.at = cfg, d.clock.Now()
	}
	a.mu.Unlock()
	if err != nil {
		d.Log.Error("configuration not taken over, the one before holds", "err", err)
		return
	}
	d.apply(ctx, old, cfg)
}

// apply has the parts go by a new configuration. What only new runs ask for they read themselves.
func (d *Daemon) apply(ctx context.Context, old, cfg *config.Config) {
	if !reflect.DeepEqual(old.Watchdog, cfg.Watchdog) {
		d.sup.SetRetryPolicy(cfg.Watchdog.StallThreshold, cfg.Watchdog.PollInterval)
		d.dog.Set(watchdogSettings(&cfg.Watchdog))
		d.Log.Info("configuration taken over", "table", "watchdog", "path", cfg.Path)
	}
	d.sup.Observer.SetErrorPatterns(errorPatterns(cfg))
	if !reflect.DeepEqual(old.Notify, cfg.Notify) {
		// First the new one takes what comes, then the old one leaves: what it had not sent yet waits in the outbox.
		before := d.notifier.Swap(d.newNotifier(&cfg.Notify))
		before.Stop()
		d.startChannels(ctx)
		d.Log.Info("configuration taken over", "table", "notify", "path", cfg.Path)
	}
	if cfg.Tmux != d.Config.Tmux {
		d.Log.Warn("the tmux server changes only when the daemon starts again", "now", d.Config.Tmux.Socket, "wanted", cfg.Tmux.Socket)
	}
}

// startChannels starts the channels of the configuration that holds. When the database does not let them start, the next look at the
// configuration tries again.
func (d *Daemon) startChannels(ctx context.Context) {
	err := d.notifier.Load().Start(ctx)
	if err != nil && !d.active.mute { // once
		d.Log.Error("start the channels", "err", err)
	}
	d.active.mute = err != nil
}
