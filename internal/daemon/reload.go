package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/config"
)

// active is the configuration that the daemon uses now.
type active struct {
	mu      sync.Mutex
	cfg     *config.Config
	stamp   stamp
	at      time.Time // when cfg was read
	problem error     // why a newer file is not used
	unread  bool      // the system failed to read that file, so the next look tries again

	reading sync.Mutex  // held while a file is read and applied, so that a later caller finds it applied
	mute    atomic.Bool // the channels could not be started yet
}

// stamp identifies a state of a file; zero means no file.
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

// state describes the configuration in use, for users.
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

// needsReload reports whether reload has something to do. It is one system call, and finds changes
// that a watch would miss: a folder that did not exist, a link with a new target, a file system that
// reports nothing.
func (d *Daemon) needsReload() bool {
	now := stampOf(d.Config.Path)
	a := &d.active
	a.mu.Lock()
	defer a.mu.Unlock()
	return now != a.stamp || a.unread || a.mute.Load()
}

// watchConfig reloads the configuration file whenever a look of the daemon finds that it has changed,
// until ctx ends.
func (d *Daemon) watchConfig(ctx context.Context) {
	if d.Load == nil {
		return
	}
	for {
		d.reload(ctx)
		select {
		case <-d.looks:
		case <-ctx.Done():
			return
		}
	}
}

// reload applies a changed configuration file, and returns when it is in effect. An invalid file
// changes only what doctor reports, and is logged once. A file that the system fails to read is read
// again by each look until that succeeds. The end of ctx does not interrupt reload.
func (d *Daemon) reload(ctx context.Context) {
	if d.Load == nil {
		return
	}
	ctx = context.WithoutCancel(ctx)
	a := &d.active
	a.reading.Lock()
	defer a.reading.Unlock()
	now := stampOf(d.Config.Path) // before the file is read, so that a later change is seen
	a.mu.Lock()
	old, same := a.cfg, now == a.stamp && !a.unread
	a.stamp = now
	a.mu.Unlock()
	if same {
		if a.mute.Load() {
			d.startChannels(ctx)
		}
		return
	}
	cfg, err := d.Load()
	if err == nil && (cfg.Home != d.Config.Home || cfg.Socket != d.Config.Socket) {
		err = fmt.Errorf("it belongs to another data root, %s", cfg.Home)
	}
	a.mu.Lock()
	again := a.unread && err != nil && err.Error() == a.problem.Error()
	_, a.unread = errors.AsType[syscall.Errno](err)
	a.problem = err
	if err == nil {
		a.cfg, a.at = cfg, d.clock.Now()
	}
	a.mu.Unlock()
	if err != nil {
		if !again { // log it once
			d.Log.Error("configuration not loaded, the previous one is still used", "err", err)
		}
		return
	}
	d.apply(ctx, old, cfg)
}

// apply passes a new configuration to the parts. Settings that only new runs need are read at their
// start.
func (d *Daemon) apply(ctx context.Context, old, cfg *config.Config) {
	if !reflect.DeepEqual(old.Watchdog, cfg.Watchdog) {
		d.sup.SetIntervals(cfg.Watchdog.StallThreshold, cfg.Watchdog.PollInterval)
		d.dog.Set(watchdogSettings(&cfg.Watchdog))
		d.Log.Info("configuration taken over", "table", "watchdog", "path", cfg.Path)
	}
	d.sup.Observer.Errors.SetPatterns(errorPatterns(cfg))
	if !reflect.DeepEqual(old.Notify, cfg.Notify) {
		// The new notifier takes over first, then the old one stops: its unsent notices wait in the
		// outbox.
		before := d.notifier.Swap(d.newNotifier(&cfg.Notify))
		before.Stop()
		d.startChannels(ctx)
		d.Log.Info("configuration taken over", "table", "notify", "path", cfg.Path)
	}
	if cfg.Tmux != d.Config.Tmux {
		d.Log.Warn("the tmux server changes only when the daemon starts again", "now", d.Config.Tmux.Socket, "wanted", cfg.Tmux.Socket)
	}
}

// startChannels starts the channels of the current configuration. When the database prevents it,
// the next check of the configuration tries again.
func (d *Daemon) startChannels(ctx context.Context) {
	err := d.notifier.Load().Start(ctx)
	if was := d.active.mute.Swap(err != nil); err != nil && !was { // log it once
		d.Log.Error("start the channels", "err", err)
	}
}
