package observe

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"agency"
)

// folders are the watched directories and their uses. A caller may hold the lock of the observer.
type folders struct {
	watcher Watcher
	log     *slog.Logger

	mu        sync.Mutex
	byDir     map[string]folder                // watched directories of runs
	followed  map[string]map[agency.RunID]bool // the agents' own files, and the runs that they are about
	listeners map[string][]chan struct{}       // watched directory to its listeners
}

// folder is a watched directory of one run, and what to do when something in it changes.
type folder struct {
	id      agency.RunID
	changed func(context.Context, agency.RunID)
	only    string // the name of the file that matters, if only one does
}

func newFolders(watcher Watcher, log *slog.Logger) folders {
	return folders{watcher: watcher, log: log, byDir: map[string]folder{}, followed: map[string]map[agency.RunID]bool{}, listeners: map[string][]chan struct{}{}}
}

// changed passes a file event for a path to the listeners. It returns the watched folder that
// contains the path, the folder that is the path, and the runs that follow the file. A folder
// without a run is not watched.
func (fs *folders) changed(path string) (in, itself folder, followers []agency.RunID) {
	dir := filepath.Dir(path)
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for _, listener := range fs.listeners[dir] {
		select {
		case listener <- struct{}{}:
		default: // an event is pending already
		}
	}
	return fs.byDir[dir], fs.byDir[path], slices.Collect(maps.Keys(fs.followed[path]))
}

// add watches a directory. A failed watch is not an error, because the rescan covers it.
func (fs *folders) add(dir string, f folder) {
	fs.mu.Lock()
	_, watched := fs.byDir[dir]
	fs.byDir[dir] = f
	fs.mu.Unlock()
	if watched {
		return
	}
	if err := fs.watcher.Add(dir); err != nil {
		fs.log.Warn("watch folder", "run", f.id, "dir", dir, "err", err)
	}
}

// removeRun stops watching directories of a run and the files that it follows.
func (fs *folders) removeRun(id agency.RunID, dirs ...string) {
	fs.mu.Lock()
	for _, dir := range dirs {
		delete(fs.byDir, dir)
	}
	for path, ids := range fs.followed {
		if ids[id] {
			delete(ids, id)
			dirs = append(dirs, filepath.Dir(path))
		}
		if len(ids) == 0 {
			delete(fs.followed, path)
		}
	}
	fs.mu.Unlock()
	for _, dir := range dirs {
		fs.watcher.Remove(dir)
	}
}

// renew watches a directory that was removed and created again.
func (fs *folders) renew(id agency.RunID, dir string) {
	fs.watcher.Remove(dir)
	if err := fs.watcher.Add(dir); err != nil {
		fs.log.Warn("watch contract", "run", id, "err", err)
	}
}

// follow records that a file is about a run, and reports whether that is new.
func (fs *folders) follow(id agency.RunID, path string) (added bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if _, known := fs.followed[path][id]; known {
		return false
	}
	if fs.followed[path] == nil {
		fs.followed[path] = map[agency.RunID]bool{}
	}
	fs.followed[path][id] = true
	return true
}

// unfollow forgets after a delay that a file is about a run, and then calls then; during the delay
// no other call follows it.
func (fs *folders) unfollow(id agency.RunID, path string, after time.Duration, then func()) {
	fs.mu.Lock()
	if fs.followed[path][id] { // the run may have ended meanwhile
		fs.followed[path][id] = false // there is no watch to remove
	}
	fs.mu.Unlock()
	time.AfterFunc(after, func() {
		fs.mu.Lock()
		delete(fs.followed[path], id)
		fs.mu.Unlock()
		then()
	})
}

// FileChanged handles a file event: the file at path may have changed.
func (ob *Observer) FileChanged(path string) {
	in, itself, followers := ob.folders.changed(path)
	if in.changed != nil && (in.only == "" || in.only == filepath.Base(path)) {
		in.changed(ob.ctx, in.id)
	}
	if itself.changed != nil {
		ob.missFolder(itself.id, path)
	}
	for _, id := range followers {
		ob.follow(ob.ctx, id, path)
	}
}

// WatchAgent requests file events for a run's status file and evidence, and reads both once for
// what was written before. A failed watch is not an error, because the rescan covers it.
func (ob *Observer) WatchAgent(r *agency.Run) {
	contract, attempt := filepath.Join(r.Worktree, agency.StateDir), AttemptDir(r.Dir, r.Attempt.Number)
	ob.folders.add(contract, folder{id: r.ID, changed: ob.ReadState})
	ob.folders.add(attempt, folder{id: r.ID, changed: func(ctx context.Context, id agency.RunID) { ob.ReadEvidence(ctx, id) }})
	ob.folders.add(r.Dir, folder{id: r.ID, changed: ob.ReadSnapshot, only: "meta.json"})
	ob.mu.Lock()
	if l := ob.live[r.ID]; l != nil {
		l.folder = stampOf(contract).inode
	}
	ob.mu.Unlock()
	ob.ReadState(ob.ctx, r.ID)
	ob.ReadEvidence(ob.ctx, r.ID)
}

// ReadState reads what an agent wrote into its state folder: its status file and its reports.
func (ob *Observer) ReadState(ctx context.Context, id agency.RunID) {
	ob.logUnread(id, errors.Join(ob.readContract(ctx, id), ob.readReports(ctx, id)))
}

// How often and how long to look for a status folder that was removed: an agent creates it again
// soon or never, and the rescan finds a later one.
const (
	missingEvery = 200 * time.Millisecond
	missingFor   = 30 * time.Second
)

// missFolder looks for a status folder that was removed, as by git clean. The watch was removed
// with the folder, and a new folder may have the same inode.
func (ob *Observer) missFolder(id agency.RunID, dir string) {
	ob.mu.Lock()
	l := ob.live[id]
	missed := l != nil && l.folder != 0 && dir == filepath.Join(l.worktree, agency.StateDir)
	if missed {
		l.folder = 0
	}
	ob.mu.Unlock()
	if !missed {
		return
	}
	ob.work.Go(func() {
		look := time.NewTicker(missingEvery)
		defer look.Stop()
		end := time.After(missingFor)
		for {
			select {
			case <-look.C:
			case <-end:
				return
			case <-ob.ctx.Done():
				return
			}
			ob.mu.Lock()
			now := ob.live[id]
			over := now == nil || now.folder != 0
			ob.mu.Unlock()
			if over {
				return // the run ended, or a rescan was first
			}
			if ob.watchAgain(id, dir) {
				ob.ReadState(ob.ctx, id)
				return
			}
		}
	})
}

// watchAgain renews the watch of a status folder that was removed and created again.
func (ob *Observer) watchAgain(id agency.RunID, dir string) (renewed bool) {
	inode := stampOf(dir).inode
	ob.mu.Lock()
	l := ob.live[id]
	renewed = l != nil && inode != 0 && inode != l.folder
	if renewed {
		l.folder = inode
	}
	ob.mu.Unlock()
	if !renewed {
		return false
	}
	ob.folders.renew(id, dir)
	return true
}

// Listen returns a channel that receives when something in the directory may have changed, and a
// function that ends the watching.
func (ob *Observer) Listen(dir string) (hints <-chan struct{}, stop func()) {
	return ob.folders.listen(dir)
}

// listen is Observer.Listen.
func (fs *folders) listen(dir string) (hints <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	fs.mu.Lock()
	fs.listeners[dir] = append(fs.listeners[dir], c)
	fs.mu.Unlock()
	if err := fs.watcher.Add(dir); err != nil {
		fs.log.Warn("watch directory", "dir", dir, "err", err)
	}
	return c, func() {
		fs.mu.Lock()
		rest := slices.DeleteFunc(fs.listeners[dir], func(other chan struct{}) bool { return other == c })
		fs.listeners[dir] = rest
		if len(rest) == 0 {
			delete(fs.listeners, dir)
		}
		fs.mu.Unlock()
		if len(rest) == 0 {
			fs.watcher.Remove(dir)
		}
	}
}
