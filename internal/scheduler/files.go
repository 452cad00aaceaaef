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
	// What changes is written after at most writeEvery, or rewriteShare times as long as a file takes to write: both leave room to
	// the lag that is promised, 50 ms or ten times the writing.
	writeEvery   = 25 * time.Millisecond
	rewriteShare = 6
	passEvery    = 10 * time.Millisecond // between two looks at what changed
	writesAtOnce = 8                     // sessions, so that a large one holds up no other
	writeLimit   = 30 * time.Second      // for one session, waiting for its repository included
	longestPause = rewriteShare * writeLimit
	// A file that cannot be written is tried again, ever more rarely.
	firstRetry, lastRetry = time.Second, time.Minute
	lastPass              = 2 * time.Second // for what Stop still has to write
)

// ActiveSession is the name of the link to the newest session that runs.
const ActiveSession = "active-session"

// FilesDeps are the parts that the writer of status files works with.
type FilesDeps struct {
	Store Store
	Log   *slog.Logger
	Now   func() time.Time // never runs backwards
	Home  string           // data root, for the logs of runs
	// Exclude keeps a folder of a repository, relative to its root, out of git.
	Exclude func(ctx context.Context, repo agency.Repo, folder string) error
}

// Files keeps the status files of sessions: status.json, a link to each log, and the link to the active session. They are a
// view: nothing reads them back, Start writes anew what may be stale, and one that cannot be written is logged and tried again.
// Each session has a time of its own at which it is due, and several are written at once.
type Files struct {
	FilesDeps

	work    service.Background
	slots   chan struct{} // one token for each session that is being written
	written chan struct{} // holds one token when a session was written since the last look
	workers sync.WaitGroup

	mu       sync.Mutex
	sessions map[agency.SessionID]*filed

	linking  sync.Mutex        // one changes links to active sessions at a time
	active   map[string]string // by status folder: where its link leads to
	unlinked map[string]string // why it does not
}

// filed is what was written of one session.
type filed struct {
	shown *agency.Session // what its file says of it; nil until it has one. Files.mu guards it

	mu        sync.Mutex // one writes at a time; what follows is the writer's
	updated   time.Time  // of the record that was written
	agents    []agency.SessionAgent
	blocks    [][]byte // the agents as they stand in the file
	unlinked  []int    // agents whose logs have no link yet
	excluded  bool
	excludeAt time.Time // not before
	due       time.Time // not before
	retry     time.Duration
	failure   string // why its files are behind; Files.mu guards it, too
}

// NewFiles makes a writer of status files. It does nothing until Start.
func NewFiles(deps FilesDeps) *Files {
	return &Files{
		FilesDeps: deps, sessions: map[agency.SessionID]*filed{}, active: map[string]string{}, unlinked: map[string]string{},
		slots: make(chan struct{}, writesAtOnce), written: make(chan struct{}, 1),
	}
}

// Start writes the files of all sessions that may need it, removes what is left of those that were removed, and follows the record
// until Stop.
func (f *Files) Start(ctx context.Context) error {
	return f.work.Start(ctx, func(ctx context.Context) error {
		f.work.Go(func() {
			f.finishRemovals(ctx)
			f.run(ctx)
		})
		return nil
	})
}

// Stop writes what is left to write, and ends. It is idempotent and waits.
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

// pass has workers write what changed and is due, as many at once as may be, or with all everything that changed, and says when to
// come again; zero is at the next change, or when something was written.
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
			continue // it is being written
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

// ahead says that a time to which something was put off is still to come. One that is further ahead than any pause was reckoned by a
// clock that was wrong, and is past.
func (f *Files) ahead(at time.Time) bool {
	wait := at.Sub(f.Now())
	return wait > 0 && wait <= longestPause
}

// end gives a session free that was written, and has the next pass look at it.
func (f *Files) end(w *filed) {
	w.mu.Unlock()
	select {
	case f.written <- struct{}{}:
	default:
	}
}

// slot takes the place of one that writes, and with wait waits until one is free.
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

// of is what was written of a session.
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

// Write writes at once what changed of a session. That its caller goes away does not end it.
func (f *Files) Write(ctx context.Context, id agency.SessionID) {
	ctx = context.WithoutCancel(ctx)
	w := f.of(id)
	w.mu.Lock()
	f.write(ctx, id, w)
	f.end(w)
	f.activate()
}
