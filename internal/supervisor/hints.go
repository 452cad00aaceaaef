package supervisor

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"agency"
)

// watch follows hints about files, and rescans what they may have missed.
func (s *Supervisor) watch() {
	rescan := time.NewTicker(s.pace())
	defer rescan.Stop()
	beats := time.NewTicker(beatEvery)
	defer beats.Stop()
	for {
		select {
		case path := <-s.Watcher.Changes():
			s.hint(path)
		case <-rescan.C:
			s.rescan()
		case <-beats.C:
			s.lookAtWrappers()
		case <-s.paced:
			rescan.Reset(s.pace())
		case <-s.ctx.Done():
			return
		}
	}
}

// hint passes on that a file may have changed.
func (s *Supervisor) hint(path string) {
	dir := filepath.Dir(path)
	s.mu.Lock()
	watched, known := s.folders[dir]
	gone, removed := s.folders[path]
	followers := slices.Collect(maps.Keys(s.followed[path]))
	for _, listener := range s.listeners[dir] {
		select {
		case listener <- struct{}{}:
		default: // it has a hint waiting already
		}
	}
	s.mu.Unlock()
	if known {
		watched.changed(s.ctx, watched.id)
	}
	if removed {
		s.missFolder(gone.id, path)
	}
	for _, id := range followers {
		s.follow(s.ctx, id, path)
	}
}

// folder is a watched directory of one run, and what to do when something in it changed.
type folder struct {
	id      agency.RunID
	changed func(context.Context, agency.RunID)
}

// watchAgent asks for hints about what a run's agent says, its contract and its evidence, and reads both once, for what
// was written before. A watch that cannot be had is no error: the rescan is there.
func (s *Supervisor) watchAgent(r *agency.Run) {
	contract, attempt := filepath.Join(r.Worktree, agency.StateDir), attemptDir(r.Dir, r.Attempt.Number)
	s.watchFolder(contract, folder{r.ID, s.readState})
	s.watchFolder(attempt, folder{r.ID, s.readEvidence})
	s.watchFolder(r.Dir, folder{r.ID, s.readSnapshot})
	s.mu.Lock()
	if l := s.live[r.ID]; l != nil {
		l.folder = inodeOf(contract)
	}
	s.mu.Unlock()
	s.readState(s.ctx, r.ID)
	s.readEvidence(s.ctx, r.ID)
}

func (s *Supervisor) watchFolder(dir string, f folder) {
	s.mu.Lock()
	_, watched := s.folders[dir]
	s.folders[dir] = f
	s.mu.Unlock()
	if watched {
		return
	}
	if err := s.Watcher.Add(dir); err != nil {
		s.Log.Warn("watch folder", "run", f.id, "dir", dir, "err", err)
	}
}

// unwatchAgent ends what watchAgent began for an attempt.
func (s *Supervisor) unwatchAgent(r *agency.Run, attempt int) {
	dirs := []string{filepath.Join(r.Worktree, agency.StateDir), attemptDir(r.Dir, attempt), r.Dir}
	s.mu.Lock()
	for _, dir := range dirs {
		delete(s.folders, dir)
	}
	for path, ids := range s.followed {
		if ids[r.ID] {
			delete(ids, r.ID)
			dirs = append(dirs, filepath.Dir(path))
		}
		if len(ids) == 0 {
			delete(s.followed, path)
		}
	}
	s.mu.Unlock()
	for _, dir := range dirs {
		s.Watcher.Remove(dir)
	}
}

// readState reads what an agent wrote into its state folder: its contract, and the reports that came with it.
func (s *Supervisor) readState(ctx context.Context, id agency.RunID) {
	s.readWord(ctx, id)
	s.readReports(ctx, id)
}

// How often a contract's folder that was removed is looked for, and for how long: an agent makes it anew soon or never, and the
// rescan finds a later one.
const (
	missingEvery = 200 * time.Millisecond
	missingFor   = 30 * time.Second
)

// missFolder looks for the folder of a contract that was removed, as by git clean: the watch went with the old one, and a new one
// may have its number.
func (s *Supervisor) missFolder(id agency.RunID, dir string) {
	s.mu.Lock()
	l := s.live[id]
	missed := l != nil && l.folder != 0 && dir == filepath.Join(l.worktree, agency.StateDir)
	if missed {
		l.folder = 0
	}
	s.mu.Unlock()
	if !missed {
		return
	}
	s.work.Go(func() {
		look := time.NewTicker(missingEvery)
		defer look.Stop()
		end := time.After(missingFor)
		for {
			select {
			case <-look.C:
			case <-end:
				return
			case <-s.ctx.Done():
				return
			}
			s.mu.Lock()
			now := s.live[id]
			over := now == nil || now.folder != 0
			s.mu.Unlock()
			if over {
				return // the run ended, or a rescan was faster
			}
			if s.watchAgain(id, dir) {
				s.readState(s.ctx, id)
				return
			}
		}
	})
}

// watchAgain renews the watch of a contract's folder that was removed and made anew.
func (s *Supervisor) watchAgain(id agency.RunID, dir string) (renewed bool) {
	inode := inodeOf(dir)
	s.mu.Lock()
	l := s.live[id]
	renewed = l != nil && inode != 0 && inode != l.folder
	if renewed {
		l.folder = inode
	}
	s.mu.Unlock()
	if !renewed {
		return false
	}
	s.Watcher.Remove(dir)
	if err := s.Watcher.Add(dir); err != nil {
		s.Log.Warn("watch contract", "run", id, "err", err)
	}
	return true
}

func inodeOf(path string) uint64 {
	info, err := os.Lstat(path)
	if err != nil {
		return 0
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return stat.Ino
}

// listen returns a channel that gets a hint when something in the directory may have changed, and a function that ends it.
func (s *Supervisor) listen(dir string) (hints <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	s.mu.Lock()
	s.listeners[dir] = append(s.listeners[dir], c)
	s.mu.Unlock()
	if err := s.Watcher.Add(dir); err != nil {
		s.Log.Warn("watch directory", "dir", dir, "err", err)
	}
	return c, func() {
		s.mu.Lock()
		rest := s.listeners[dir][:0]
		for _, other := range s.listeners[dir] {
			if other != c {
				rest = append(rest, other)
			}
		}
		s.listeners[dir] = rest
		if len(rest) == 0 {
			delete(s.listeners, dir)
		}
		s.mu.Unlock()
		if len(rest) == 0 {
			s.Watcher.Remove(dir)
		}
	}
}
