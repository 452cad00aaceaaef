package daemon

import (
	"errors"
	"log/slog"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// watcher tells which files in watched directories may have changed. One kernel watcher serves all of them. What it misses, after
// an overflow or where watches have run out, the supervisor's rescan finds.
type watcher struct {
	kernel  *fsnotify.Watcher // nil where the user's other programs have all that the kernel gives
	changes chan string
	done    chan struct{}
	log     *slog.Logger

	mu   sync.Mutex
	uses map[string]int
}

var errNoWatch = errors.New("the kernel gives no file watch")

func newWatcher(log *slog.Logger) *watcher {
	w := &watcher{changes: make(chan string), done: make(chan struct{}), log: log, uses: map[string]int{}}
	kernel, err := fsnotify.NewBufferedWatcher(1024)
	if err != nil {
		log.Warn("no file watch: statuses are seen late", "err", err)
		close(w.done)
		return w
	}
	w.kernel = kernel
	go w.pass()
	return w
}

func (w *watcher) pass() {
	defer close(w.done)
	for {
		select {
		case event, ok := <-w.kernel.Events:
			if !ok {
				return
			}
			if event.Op == fsnotify.Chmod {
				continue
			}
			w.changes <- event.Name
		case err, ok := <-w.kernel.Errors:
			if !ok {
				return
			}
			w.log.Warn("file watch", "err", err)
		}
	}
}

// Add watches a directory; each Add that does not fail wants a Remove.
func (w *watcher) Add(dir string) error {
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

// Remove ends one Add. Removing what is not watched is fine.
func (w *watcher) Remove(dir string) {
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

// Changes is where the paths of files come; it is never closed.
func (w *watcher) Changes() <-chan string { return w.changes }

// close ends the watching. Nobody may be reading Changes any more, so what is on its way is dropped.
func (w *watcher) close() {
	if w.kernel != nil {
		_ = w.kernel.Close()
	}
	for {
		select {
		case <-w.changes:
		case <-w.done:
			return
		}
	}
}
