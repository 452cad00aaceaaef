// Package watch reports which files may have changed, as the kernel reports it.
package watch

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/fsnotify/fsnotify"

	"agency/internal/service"
)

// Watcher is a service that reports which files in watched directories may have changed. One kernel
// watcher serves all of them. It misses changes after an overflow, or when the kernel has no more
// watches: a caller that depends on them also looks by itself from time to time.
type Watcher struct {
	log     *slog.Logger
	changes chan string
	work    service.Background

	mu     sync.Mutex
	kernel *fsnotify.Watcher // nil while stopped, and when other programs of the user hold all watchers that the kernel gives
	uses   map[string]int
}

var errNoWatch = errors.New("the kernel gives no file watch")

// New returns a watcher. It does nothing until Start.
func New(log *slog.Logger) *Watcher {
	return &Watcher{changes: make(chan string), log: log, uses: map[string]int{}}
}

// Start begins to watch. It does not fail when the kernel gives no watcher: Add does.
func (w *Watcher) Start(ctx context.Context) error {
	return w.work.Start(ctx, func(ctx context.Context) error {
		kernel, err := fsnotify.NewBufferedWatcher(1024)
		if err != nil {
			w.log.Warn("no file watch: statuses are seen late", "err", err)
			return nil
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.kernel = kernel
		w.work.Go(func() { w.pass(ctx, kernel) })
		return nil
	})
}

// Stop ends watching and waits until it has ended. It drops pending changes. It is idempotent.
func (w *Watcher) Stop() { w.work.Stop() }

// pass forwards what the kernel reports until ctx ends.
func (w *Watcher) pass(ctx context.Context, kernel *fsnotify.Watcher) {
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.kernel = nil
		clear(w.uses)
		_ = kernel.Close()
	}()
	for {
		select {
		case event := <-kernel.Events:
			if event.Op == fsnotify.Chmod {
				continue
			}
			select {
			case w.changes <- event.Name:
			case <-ctx.Done():
				return
			}
		case err := <-kernel.Errors:
			w.log.Warn("file watch", "err", err)
		case <-ctx.Done():
			return
		}
	}
}

// Add watches a directory. Each successful Add needs a Remove.
func (w *Watcher) Add(dir string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.kernel == nil {
		return errNoWatch
	}
	w.uses[dir]++
	if w.uses[dir] > 1 {
		return nil
	}
	err := w.kernel.Add(dir)
	if err != nil {
		delete(w.uses, dir)
	}
	return err
}

// Remove undoes one Add. It does nothing for a directory that is not watched.
func (w *Watcher) Remove(dir string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.kernel == nil {
		return
	}
	if w.uses[dir]--; w.uses[dir] > 0 {
		return
	}
	delete(w.uses, dir)
	_ = w.kernel.Remove(dir) // the directory may be gone, and its watch with it
}

// Changes returns the channel of the paths of files that may have changed. It is never closed.
func (w *Watcher) Changes() <-chan string { return w.changes }
