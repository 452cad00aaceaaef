package observe

import (
	"path/filepath"
	"sync"
	"time"

	"agency"
)

// liveRun is what is known beyond the record about a run that is not final.
type liveRun struct {
	id         agency.RunID
	attempt    int
	worktree   string
	dir        string // run directory
	unseen     bool   // the last look found neither a wrapper nor a tmux session
	lastOutput stamped
	logLost    int64     // bytes missing in its log
	lastChange stamped   // when its output last had something new
	beat       stamped   // the last heartbeat that was read
	idle       bool      // that heartbeat was too old at the last look
	stamp      fileStamp // of the status file when it was last read
	snapshot   fileStamp // of meta.json when it was last compared with the record
	reports    fileStamp // of the file of reports when it was last taken over
	folder     uint64    // inode of the folder that is watched for them; 0 while there is none
	// agentState is derived from the evidence, and newer than the record's. It is never changed,
	// only replaced.
	agentState *agency.AgentState
	look       *time.Timer       // reads the screen when the output has been still; nil until there was output
	screen     []agency.Evidence // what the screen showed at the last look
	output     *outputReader
}

// stamped is the time of something that a wrapper repeats until there is a newer one.
type stamped struct {
	at    time.Time // by the daemon's clock when it was first read
	stamp time.Time // by the system's clock, as the wrapper took it
}

// take takes over what a wrapper reported, and returns whether it is new. What has an earlier time is
// new too: the system's clock was set back.
func (s *stamped) take(stamp time.Time, convert func(time.Time) time.Time) bool {
	if stamp.IsZero() || stamp.Equal(s.stamp) {
		return false
	}
	s.at, s.stamp = convert(stamp), stamp
	return true
}

// liveRuns are the runs that are not final.
type liveRuns struct {
	mu   sync.Mutex
	live map[agency.RunID]*liveRun
}

// Track watches a run that is not final. r may be older than a later attempt that is watched
// already; that one stays.
func (ob *Observer) Track(r *agency.Run) {
	ob.mu.Lock()
	defer ob.mu.Unlock()
	old := ob.live[r.ID]
	if old != nil && old.attempt >= r.Attempt.Number {
		return
	}
	if old != nil && old.look != nil {
		old.look.Stop()
	}
	ob.live[r.ID] = &liveRun{
		id: r.ID, attempt: r.Attempt.Number, worktree: r.Worktree, dir: r.Dir, agentState: r.Attempt.AgentState.Clone(), output: newOutputReader(r),
	}
}

// Forget stops watching an attempt that is over. A later attempt of the same run stays watched.
func (ob *Observer) Forget(r *agency.Run, attempt int) {
	ob.mu.Lock()
	l := ob.live[r.ID]
	later := l != nil && l.attempt > attempt
	if l != nil && !later {
		delete(ob.live, r.ID)
		if l.look != nil {
			l.look.Stop()
		}
	}
	ob.mu.Unlock()
	if !later {
		ob.folders.removeRun(r.ID, filepath.Join(r.Worktree, agency.StateDir), AttemptDir(r.Dir, attempt), r.Dir)
	}
}

// LiveRuns returns the number of runs that are not final.
func (lr *liveRuns) LiveRuns() int {
	lr.mu.Lock()
	defer lr.mu.Unlock()
	return len(lr.live)
}

// copyOf returns a copy of what is known about a run that is not final.
func (lr *liveRuns) copyOf(id agency.RunID) (liveRun, bool) {
	lr.mu.Lock()
	defer lr.mu.Unlock()
	l := lr.live[id]
	if l == nil {
		return liveRun{}, false
	}
	return *l, true
}

// change changes what is known about an attempt, if it is still the one that is watched.
func (lr *liveRuns) change(l *liveRun, change func(now *liveRun)) {
	lr.mu.Lock()
	defer lr.mu.Unlock()
	if now := lr.live[l.id]; now != nil && now.attempt == l.attempt {
		change(now)
	}
}

// Seen is what is known about a live attempt.
type Seen struct {
	Attempt       int
	AgentState    *agency.AgentState // read-only
	OutputAt      time.Time          // when it last printed something; zero if not since the daemon started
	OutputChanged time.Time          // when its output last had something new; zero is unknown
}

// Seen returns what is known about a run that is not final. ok is false when the run is over.
func (lr *liveRuns) Seen(id agency.RunID) (seen Seen, ok bool) {
	l, ok := lr.copyOf(id)
	return Seen{l.attempt, l.agentState, l.lastOutput.at, l.lastChange.at}, ok
}

// Keep copies what is known about an agent that ended into the last record of its attempt.
func (lr *liveRuns) Keep(id agency.RunID, a *agency.Attempt) {
	if l, ok := lr.copyOf(id); ok && l.attempt == a.Number {
		a.AgentState = *l.agentState
	}
}

// Printed handles output that the wrapper of an attempt reports. It reads what was printed, and the
// screen once the output is still. With an exit it does not read what was printed, because the exit
// is better evidence than the last output.
func (ob *Observer) Printed(id agency.RunID, attempt int, u *agency.WrapperUpdate) {
	ob.mu.Lock()
	more := false
	if l := ob.live[id]; l != nil && l.attempt == attempt {
		more = l.lastOutput.take(*u.Output, ob.Convert)
		l.logLost = u.LogLost
		if u.Changed != nil {
			l.lastChange.take(*u.Changed, ob.Convert)
		}
	}
	ob.mu.Unlock()
	if more && u.Exit == nil {
		ob.Errors.readOutput(ob.ctx, id)
	}
	ob.lookSoon(id)
}

// SetUnseen sets which runs have neither a connected wrapper nor a tmux session. The predicate is
// called under the lock of the live runs, so that it cannot overwrite a later SetSeen.
func (lr *liveRuns) SetUnseen(unseen func(id agency.RunID) bool) {
	lr.mu.Lock()
	defer lr.mu.Unlock()
	for id, l := range lr.live {
		l.unseen = unseen(id)
	}
}

// SetSeen records that a run is visible again: its wrapper connected.
func (lr *liveRuns) SetSeen(id agency.RunID) {
	lr.mu.Lock()
	defer lr.mu.Unlock()
	if l := lr.live[id]; l != nil {
		l.unseen = false
	}
}
