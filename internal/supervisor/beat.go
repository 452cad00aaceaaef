package supervisor

import (
	"os"
	"path/filepath"
	"time"

	"agency"
)

const (
	// beatEvery is how often the heartbeats are looked at. A wrapper moves its own as often.
	beatEvery = 5 * time.Second
	// beatLimit is the silence after which nothing is known of an agent whose wrapper lives: the wrapper is suspended, or waits for
	// a disk.
	beatLimit = 15 * time.Second
)

// beatOf is when the wrapper of an attempt last moved; zero when it never did.
func beatOf(runDir string, attempt int) time.Time {
	info, err := os.Lstat(filepath.Join(attemptDir(runDir, attempt), "heartbeat"))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// lookAtWrappers reads the heartbeats of all live attempts, and writes into state.json which wrappers fell silent or move again.
func (s *Supervisor) lookAtWrappers() {
	s.mu.Lock()
	runs := make([]liveRun, 0, len(s.live))
	for _, l := range s.live {
		runs = append(runs, *l)
	}
	s.mu.Unlock()
	for i := range runs {
		l := &runs[i]
		beat := beatOf(l.dir, l.attempt)
		changed := false
		s.remember(l, func(now *liveRun) {
			now.beat = later(now.beat, beat)
			if silent := s.silent(now); silent != now.silent {
				now.silent, changed = silent, true
			}
		})
		if !changed {
			continue
		}
		if r, err := s.Records.Run(s.ctx, l.id); err == nil {
			s.refreshState(l, r)
		}
	}
}

// silent says that the wrapper of an attempt has not moved for too long, as far as its heartbeat was read.
func (s *Supervisor) silent(l *liveRun) bool {
	return !l.beat.IsZero() && s.Now().Sub(l.beat) >= beatLimit && s.Elapsed(l.beat) >= beatLimit
}

// silentSince is when the wrapper of a live attempt last moved, if that is too long ago; else zero. What was read may be old, so
// it is read again before anything is told by it.
func (s *Supervisor) silentSince(r *agency.Run) time.Time {
	l, ok := s.liveCopy(r.ID)
	if !ok || l.attempt != r.Attempt.Number || !s.silent(&l) {
		return time.Time{}
	}
	if l.beat = later(l.beat, beatOf(l.dir, l.attempt)); !s.silent(&l) {
		return time.Time{}
	}
	return l.beat
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
