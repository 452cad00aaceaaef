package supervisor

import (
	"os"
	"path/filepath"
	"syscall"
	"time"

	"agency"
)

// watch follows hints about directories, and rescans what they may have missed.
func (s *Supervisor) watch() {
	rescan := time.NewTicker(s.Rescan)
	defer rescan.Stop()
	for {
		select {
		case dir := <-s.Watcher.Changes():
			s.hint(dir)
		case <-rescan.C:
			s.rescan()
		case <-s.ctx.Done():
			return
		}
	}
}

// hint passes on that something in a directory may have changed.
func (s *Supervisor) hint(dir string) {
	s.mu.Lock()
	id, isContract := s.contracts[dir]
	for _, listener := range s.listeners[dir] {
		select {
		case listener <- struct{}{}:
		default: // it has a hint waiting already
		}
	}
	s.mu.Unlock()
	if isContract {
		s.readWord(s.ctx, id)
	}
}

// watchContract asks for hints about a run's contract file, and reads it once, for what was written before. A watch that
// cannot be had is no error: the rescan is there.
func (s *Supervisor) watchContract(r *agency.Run) {
	dir := filepath.Join(r.Worktree, agency.StateDir)
	s.mu.Lock()
	_, watched := s.contracts[dir]
	s.contracts[dir] = r.ID
	if l := s.live[r.ID]; l != nil {
		l.folder = inodeOf(dir)
	}
	s.mu.Unlock()
	if !watched {
		if err := s.Watcher.Add(dir); err != nil {
			s.Log.Warn("watch contract", "run", r.ID, "err", err)
		}
	}
	s.readWord(s.ctx, r.ID)
}

// watchAgain renews the watch of a contract's folder that was removed and made anew: the old watch went with it.
func (s *Supervisor) watchAgain(l *liveRun) {
	dir := filepath.Join(l.worktree, agency.StateDir)
	now := inodeOf(dir)
	if now == l.folder || now == 0 {
		return
	}
	s.mu.Lock()
	if current := s.live[l.id]; current != nil {
		current.folder = now
	}
	s.mu.Unlock()
	s.Watcher.Remove(dir)
	if err := s.Watcher.Add(dir); err != nil {
		s.Log.Warn("watch contract", "run", l.id, "err", err)
	}
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
