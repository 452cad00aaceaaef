package observe

import (
	"path/filepath"
	"time"

	"agency"
)

// liveRun is what is known of a run that is not final and cannot be read from the record.
type liveRun struct {
	id         agency.RunID
	attempt    int
	worktree   string
	dir        string // run directory
	unseen     bool   // at the last look there was neither a wrapper nor a tmux session
	lastOutput time.Time
	logLost    int64     // bytes that are missing in its log
	lastNews   time.Time // when its output last said something new
	beat       time.Time // when its wrapper last moved, as far as it was looked at
	idle       bool      // that was too long ago at the last look
	stamp      fileStamp // of the contract file when it was read last
	snapshot   fileStamp // of meta.json when it was last compared with the record
	reports    fileStamp // of the file of reports when it was taken over last
	folder     uint64    // inode of the folder that is watched for it; 0 while there is none
	// agentState is what the evidence comes to, newer than the record's. It is never changed, only
	// replaced.
	agentState *agency.AgentState
	look       *time.Timer       // reads the screen when the output has been still; nil until there was some
	screen     []agency.Evidence // what the screen said at the last look
	output     *outputReader
}

// Track watches a run that is not final. What was read of an attempt may be older than the next
// one, which is watched then and stays so.
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

// Forget ends the watching of an attempt that is over. A later one of the same run stays watched.
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

// LiveRuns counts the runs that are not final.
func (ob *Observer) LiveRuns() int {
	ob.mu.Lock()
	defer ob.mu.Unlock()
	return len(ob.live)
}

// copyOf returns what is known of a run that is not final, as it is now.
func (ob *Observer) copyOf(id agency.RunID) (liveRun, bool) {
	ob.mu.Lock()
	defer ob.mu.Unlock()
	l := ob.live[id]
	if l == nil {
		return liveRun{}, false
	}
	return *l, true
}

// change changes what is known of an attempt, if it is still the one that is watched.
func (ob *Observer) change(l *liveRun, change func(now *liveRun)) {
	ob.mu.Lock()
	defer ob.mu.Unlock()
	if now := ob.live[l.id]; now != nil && now.attempt == l.attempt {
		change(now)
	}
}

// Seen is what is known of a live attempt.
type Seen struct {
	Attempt    int
	AgentState *agency.AgentState // not to be changed
	OutputAt   time.Time          // when it last printed something; zero is never, or not since the daemon began
	OutputNews time.Time          // when its output last said something new; zero is unknown
}

// Seen returns what is known of a run that is not final. ok is false when the run is over.
func (ob *Observer) Seen(id agency.RunID) (seen Seen, ok bool) {
	l, ok := ob.copyOf(id)
	return Seen{l.attempt, l.agentState, l.lastOutput, l.lastNews}, ok
}

// Keep puts what is known of an agent that ended into its last record.
func (ob *Observer) Keep(id agency.RunID, a *agency.Attempt) {
	if l, ok := ob.copyOf(id); ok && l.attempt == a.Number {
		a.AgentState = *l.agentState
	}
}

// Printed takes that the wrapper of an attempt saw output. It reads what was printed, and the
// screen once that is still. How an attempt ended says more than what it printed last, so with its
// exit only the time is kept.
func (ob *Observer) Printed(id agency.RunID, attempt int, u *agency.WrapperUpdate) {
	ob.mu.Lock()
	more := false
	if l := ob.live[id]; l != nil && l.attempt == attempt {
		more = u.Output.After(l.lastOutput)
		l.lastOutput, l.logLost = *u.Output, u.LogLost
		if u.EventDraft != nil {
			l.lastNews = *u.EventDraft
		}
	}
	ob.mu.Unlock()
	if more && u.Exit == nil {
		ob.readOutput(ob.ctx, id)
	}
	ob.lookSoon(id)
}

// SetUnseen takes of which runs nothing can be seen: no wrapper is connected, and the tmux session
// is gone. The predicate is called under the observer's lock, so that it cannot miss what SetSeen
// tells after it.
func (ob *Observer) SetUnseen(unseen func(id agency.RunID) bool) {
	ob.mu.Lock()
	defer ob.mu.Unlock()
	for id, l := range ob.live {
		l.unseen = unseen(id)
	}
}

// SetSeen takes that something shows of a run: its wrapper connected.
func (ob *Observer) SetSeen(id agency.RunID) {
	ob.mu.Lock()
	defer ob.mu.Unlock()
	if l := ob.live[id]; l != nil {
		l.unseen = false
	}
}
