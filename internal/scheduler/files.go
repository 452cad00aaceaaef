package scheduler

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"agency"
	"agency/internal/service"
)

const (
	// Changes are written after at most writeEvery, or after rewriteShare times the duration of a
	// write. Both keep within the promised delay: 50 ms or ten times the duration of a write.
	writeEvery   = 25 * time.Millisecond
	rewriteShare = 6
	passEvery    = 10 * time.Millisecond // between two checks for changes
	writesAtOnce = 8                     // number of sessions, so that a large one delays no other
	writeLimit   = 30 * time.Second      // for one session, including the wait for its repository
	longestPause = rewriteShare * writeLimit
	// The delays after a failed write grow from firstRetry to lastRetry.
	firstRetry, lastRetry = time.Second, time.Minute
	lastPass              = 2 * time.Second // for the last writes during Stop
)

// ActiveSession is the name of the link to the newest running session.
const ActiveSession = "active-session"

// FilesDeps are the dependencies of the writer of status files.
type FilesDeps struct {
	Store Store
	Log   *slog.Logger
	Now   func() time.Time // never runs backwards
	Home  string           // data root, for the logs of runs
	// Exclude makes git ignore a folder of a repository, relative to its root.
	Exclude func(ctx context.Context, repo agency.Repo, folder string) error
}

// Files writes the status files of sessions: status.json, a link to each log, and the link to the
// active session. They are copies that agency never reads back. Start rewrites those that may be
// stale; a failed write is logged and tried again. Each session has its own due time, and several
// are written at once.
type Files struct {
	FilesDeps

	work    service.Background
	slots   chan struct{} // one token for each session being written
	written chan struct{} // holds one token when a session was written since the last check
	workers sync.WaitGroup

	mu       sync.Mutex
	sessions map[agency.SessionID]*filed

	linking  sync.Mutex        // held to change a link to an active session
	active   map[string]string // by status folder: the target of its link
	unlinked map[string]string // why there is no link
}

// filed is the state of the written files of one session.
type filed struct {
	shown *agency.Session // the session as its file shows it; nil before the first write. Guarded by Files.mu

	mu        sync.Mutex // held while writing; guards the fields below
	updated   time.Time  // UpdatedAt of the record that was written
	agents    []agency.SessionAgent
	blocks    [][]byte // the agents as the file shows them
	unlinked  []int    // agents whose logs have no link yet
	excluded  bool
	excludeAt time.Time // earliest time
	due       time.Time // earliest time
	retry     time.Duration
	failure   string // why its files are behind; guarded by Files.mu, too
}

// NewFiles returns a writer of status files that does nothing until Start.
func NewFiles(deps FilesDeps) *Files {
	return &Files{
		FilesDeps: deps, sessions: map[agency.SessionID]*filed{}, active: map[string]string{}, unlinked: map[string]string{},
		slots: make(chan struct{}, writesAtOnce), written: make(chan struct{}, 1),
	}
}

// Start writes the files of all sessions that may need it, removes leftovers of removed sessions,
// and follows the record until Stop.
func (f *Files) Start(ctx context.Context) error {
	return f.work.Start(ctx, func(ctx context.Context) error {
		f.work.Go(func() {
			f.finishRemovals(ctx)
			f.run(ctx)
		})
		return nil
	})
}

// Stop writes the remaining changes and waits for the end. It is idempotent.
func (f *Files) Stop() { f.work.Stop() }

func (f *Files) run(ctx context.Context) {
	for {
		changed := f.Store.SessionsChanged()
		next := f.pass(ctx, false)
		timer := time.NewTimer(time.Hour)
		if !next.IsZero() {
			timer.Reset(max(next.Sub(f.Now()), time.Millisecond))
		}
		select {
		case <-changed:
		case <-f.written:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		select {
		case <-time.After(passEvery):
		case <-ctx.Done():
			f.workers.Wait()
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastPass)
			defer cancel()
			f.pass(last, true)
			f.workers.Wait()
			f.activate()
			return
		}
	}
}

// pass lets workers write what changed and is due, up to the limit of parallel writes; with all, it
// writes every change. It returns when to run again; zero is at the next change or when a write has
// ended.
func (f *Files) pass(ctx context.Context, all bool) (next time.Time) {
	sessions, err := f.Store.SessionsWithStaleFiles(ctx)
	if err != nil {
		if ctx.Err() == nil {
			f.Log.Error("read sessions for their status files", "err", err)
		}
		return f.Now().Add(firstRetry)
	}
	f.activate()
	f.forget(sessions)
	type job struct {
		*filed
		id agency.SessionID
	}
	var due []job
	for i := range sessions {
		s := &sessions[i]
		w := f.of(s.ID)
		if !w.mu.TryLock() {
			continue // a write is in progress
		}
		switch {
		case w.updated.Equal(s.UpdatedAt) && w.failure == "" && !s.Status.Final():
			w.mu.Unlock()
		case !all && f.ahead(w.due):
			if next.IsZero() || w.due.Before(next) {
				next = w.due
			}
			w.mu.Unlock()
		default:
			due = append(due, job{w, s.ID})
		}
	}
	slices.SortStableFunc(due, func(a, b job) int { return a.due.Compare(b.due) })
	for _, w := range due {
		if !f.slot(ctx, all) {
			w.mu.Unlock()
			continue
		}
		f.workers.Go(func() {
			f.write(ctx, w.id, w.filed)
			<-f.slots
			f.end(w.filed)
		})
	}
	return next
}

// ahead reports whether a planned time is still to come. A time further ahead than any pause was
// computed by a wrong clock, and counts as past.
func (f *Files) ahead(at time.Time) bool {
	wait := at.Sub(f.Now())
	return wait > 0 && wait <= longestPause
}

// end marks the write of a session as ended and makes the next pass look at the session.
func (f *Files) end(w *filed) {
	w.mu.Unlock()
	select {
	case f.written <- struct{}{}:
	default:
	}
}

// slot takes one of the slots for writing; with wait it waits until one is free.
func (f *Files) slot(ctx context.Context, wait bool) bool {
	select {
	case f.slots <- struct{}{}:
		return true
	default:
	}
	if !wait {
		return false
	}
	select {
	case f.slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// of returns the state of the written files of a session.
func (f *Files) of(id agency.SessionID) *filed {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := f.sessions[id]
	if w == nil {
		w = &filed{}
		f.sessions[id] = w
	}
	return w
}

func (f *Files) drop(id agency.SessionID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.sessions, id)
}

// forget drops the sessions that have settled and are not among the unfiled ones.
func (f *Files) forget(unfiled []agency.Session) {
	f.mu.Lock()
	defer f.mu.Unlock()
	left := make(map[agency.SessionID]bool, len(unfiled))
	for i := range unfiled {
		left[unfiled[i].ID] = true
	}
	maps.DeleteFunc(f.sessions, func(id agency.SessionID, w *filed) bool {
		return !left[id] && w.shown != nil && w.shown.Status.Final()
	})
}

// Write writes the changes of a session at once. It continues when its caller is cancelled.
func (f *Files) Write(ctx context.Context, id agency.SessionID) {
	ctx = context.WithoutCancel(ctx)
	w := f.of(id)
	w.mu.Lock()
	f.write(ctx, id, w)
	f.end(w)
	f.activate()
}
