package observe

import (
	"os"
	"path/filepath"
	"time"

	"agency"
)

const (
	// BeatEvery is how often the heartbeats are read. A wrapper updates its own as often.
	BeatEvery = 5 * time.Second
	// beatLimit is the age of a heartbeat from which nothing is known about the agent, though its
	// wrapper lives: the wrapper is suspended, or waits for a disk.
	beatLimit = 15 * time.Second
)

// BeatOf returns the time of the last heartbeat of an attempt's wrapper by the system's clock; zero
// when there was none.
func BeatOf(runDir string, attempt int) time.Time {
	dir := AttemptDir(runDir, attempt)
	info, err := os.Lstat(filepath.Join(dir, "wrapper", "heartbeat"))
	if err != nil {
		info, err = os.Lstat(filepath.Join(dir, "heartbeat")) // of an older wrapper
	}
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// Heartbeats reads the heartbeats of all live attempts, and returns the runs whose wrappers became
// inactive or active again.
func (ob *Observer) Heartbeats() (changed []agency.RunID) {
	ob.mu.Lock()
	runs := make([]liveRun, 0, len(ob.live))
	for _, l := range ob.live {
		runs = append(runs, *l)
	}
	ob.mu.Unlock()
	for i := range runs {
		l := &runs[i]
		beat := BeatOf(l.dir, l.attempt)
		ob.change(l, func(now *liveRun) {
			now.beat.take(beat, ob.Convert)
			if idle := ob.isIdle(now); idle != now.idle {
				now.idle, changed = idle, append(changed, l.id)
			}
		})
	}
	return changed
}

// isIdle reports whether the heartbeat of an attempt, as last read, is too old.
func (ob *Observer) isIdle(l *liveRun) bool {
	beat := l.beat.at
	return !beat.IsZero() && ob.Now().Sub(beat) >= beatLimit && ob.Elapsed(beat) >= beatLimit
}

// IdleSince returns the last heartbeat of a live attempt's wrapper if it is too old; else zero. It
// reads the heartbeat again before it reports that.
func (ob *Observer) IdleSince(r *agency.Run) time.Time {
	l, ok := ob.copyOf(r.ID)
	if !ok || l.attempt != r.Attempt.Number || !ob.isIdle(&l) {
		return time.Time{}
	}
	if l.beat.take(BeatOf(l.dir, l.attempt), ob.Convert); !ob.isIdle(&l) {
		return time.Time{}
	}
	return l.beat.at
}
