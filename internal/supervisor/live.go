package supervisor

import (
	"context"
	"slices"
	"sync"
	"time"

	"agency"
)

// Live holds the attempts that have not ended, and the connections to their wrappers. The observer
// knows each of them: an attempt is tracked there first and forgotten there last. The lock is taken
// last, and no I/O happens under it.
type Live struct {
	store *Records

	mu   sync.Mutex
	runs map[agency.RunID]*live
}

// live is an attempt that has not ended. The lock of Live guards what changes in it.
type live struct {
	id           agency.RunID
	attempt      int
	link         Link             // nil while no wrapper is connected
	wrappers     []agency.Process // the processes that proved to be the attempt's; one of them is the wrapper
	views        int              // how often the files that mirror the record were written
	state        *runState        // the content of its state.json; nil when that is not known
	asked        bool             // a user requested its end
	sessionEnded bool             // its session was ended
	mayStart     bool             // the wrapper may start its runner
	replaced     int              // wrappers that were started in its place, and did not connect
	replacedAt   time.Time        // when the last of them was started
	spans        []agency.Span    // of its start, if a client asked for them
	moved        chan struct{}    // closed and replaced when the attempt's state or its link changes
}

// track adds an attempt that has not ended. r may be older than a later attempt of the run that is
// tracked already; that one is kept.
func (lv *Live) track(r *agency.Run) {
	lv.mu.Lock()
	defer lv.mu.Unlock()
	lv.trackLocked(r)
}

// trackLocked is track for a caller that holds the lock. It returns the tracked attempt.
func (lv *Live) trackLocked(r *agency.Run) *live {
	old := lv.runs[r.ID]
	if old != nil && old.attempt >= r.Attempt.Number {
		return old
	}
	if old != nil {
		close(old.moved)
	}
	l := &live{id: r.ID, attempt: r.Attempt.Number, moved: make(chan struct{})}
	if r.Attempt.Wrapper != nil {
		l.wrappers = []agency.Process{*r.Attempt.Wrapper}
	}
	lv.runs[r.ID] = l
	return l
}

// forget drops an attempt that is over and wakes its waiters. A later attempt of the same run
// stays.
func (lv *Live) forget(id agency.RunID, attempt int) {
	lv.mu.Lock()
	defer lv.mu.Unlock()
	if l := lv.runs[id]; l != nil && l.attempt <= attempt {
		delete(lv.runs, id)
		close(l.moved)
	}
}

// connect sets the link to an attempt's wrapper. It returns the previous link, and false when a
// later attempt is live.
func (lv *Live) connect(ctx context.Context, r *agency.Run, hello *agency.WrapperHello, link Link) (before Link, ok bool) {
	lv.mu.Lock()
	defer lv.mu.Unlock()
	l := lv.trackLocked(r)
	if l.attempt != hello.Attempt {
		return nil, false
	}
	before, l.link, l.replaced = l.link, link, 0
	if l.mayStart {
		go sendGo(ctx, link)
	}
	if hello.Wrapper.PID != 0 && !slices.Contains(l.wrappers, hello.Wrapper) {
		l.wrappers = append(l.wrappers, hello.Wrapper)
	}
	close(l.moved)
	l.moved = make(chan struct{})
	return before, true
}

// disconnect drops a link and reports whether it was the attempt's.
func (lv *Live) disconnect(id agency.RunID, attempt int, link Link) bool {
	lv.mu.Lock()
	defer lv.mu.Unlock()
	l := lv.runs[id]
	if l == nil || l.attempt != attempt || l.link != link {
		return false
	}
	l.link = nil
	return true
}

// close closes all links.
func (lv *Live) close() {
	for _, l := range lv.list() {
		if l.link != nil {
			_ = l.link.Close()
		}
	}
}

// list returns all attempts as they are now.
func (lv *Live) list() []live {
	lv.mu.Lock()
	defer lv.mu.Unlock()
	all := make([]live, 0, len(lv.runs))
	for _, l := range lv.runs {
		all = append(all, *l)
	}
	return all
}

// get returns the attempt of a run as it is now.
func (lv *Live) get(id agency.RunID) (live, bool) {
	lv.mu.Lock()
	defer lv.mu.Unlock()
	l := lv.runs[id]
	if l == nil {
		return live{}, false
	}
	return *l, true
}

// change changes what is kept of a live run.
func (lv *Live) change(id agency.RunID, change func(l *live)) {
	lv.mu.Lock()
	defer lv.mu.Unlock()
	if l := lv.runs[id]; l != nil {
		change(l)
	}
}

// moved wakes the waiters for a run's state.
func (lv *Live) moved(id agency.RunID) {
	lv.mu.Lock()
	defer lv.mu.Unlock()
	if l := lv.runs[id]; l != nil {
		close(l.moved)
		l.moved = make(chan struct{})
	}
}

// awaitState waits until done returns true for the run, and returns the run.
func (lv *Live) awaitState(ctx context.Context, id agency.RunID, done func(*agency.Run) bool) (*agency.Run, error) {
	for {
		lv.mu.Lock()
		var moved chan struct{}
		if l := lv.runs[id]; l != nil {
			moved = l.moved
		}
		lv.mu.Unlock()
		r, err := lv.store.Run(ctx, id)
		if err != nil {
			return nil, err
		}
		if done(r) || moved == nil {
			return r, nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return r, ctx.Err()
		}
	}
}

// adoptTimeout is how long a command waits for a wrapper that is not connected. A live wrapper
// tries four times a second.
const adoptTimeout = 3 * time.Second

// awaitLink returns the link to a run's wrapper. After a start of the daemon it waits for the
// wrapper to connect again; it returns nil when none does.
func (lv *Live) awaitLink(ctx context.Context, id agency.RunID) Link {
	timeout := time.After(adoptTimeout)
	for {
		lv.mu.Lock()
		l := lv.runs[id]
		var link Link
		var moved chan struct{}
		if l != nil {
			link, moved = l.link, l.moved
		}
		lv.mu.Unlock()
		if link != nil || moved == nil {
			return link
		}
		select {
		case <-moved:
		case <-timeout:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// watched returns the live attempt that r has; nil when that is over.
func (lv *Live) watched(r *agency.Run) *live {
	lv.mu.Lock()
	defer lv.mu.Unlock()
	if l := lv.runs[r.ID]; l != nil && l.attempt == r.Attempt.Number {
		return l
	}
	return nil
}

// letGo lets the wrapper of a run start its runner, now and whenever it connects.
func (lv *Live) letGo(ctx context.Context, id agency.RunID) {
	lv.change(id, func(l *live) {
		l.mayStart = true
		if l.link != nil {
			go sendGo(ctx, l.link)
		}
	})
}

// sendGo lets a wrapper start its runner. A link that does not take that is closed: the wrapper
// connects again, and gets it with the next one.
func sendGo(ctx context.Context, link Link) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goTimeout)
	defer cancel()
	if err := link.Go(ctx); err != nil {
		_ = link.Close()
	}
}

// goTimeout bounds how long a wrapper may take to get ready for its go.
const goTimeout = 10 * time.Second

// spansOf returns the steps of a start that its wrapper has reported.
func (lv *Live) spansOf(id agency.RunID) []agency.Span {
	l, _ := lv.get(id)
	return l.spans
}

// link returns the link to a run's wrapper; nil while none is connected.
func (lv *Live) link(id agency.RunID) Link {
	lv.mu.Lock()
	defer lv.mu.Unlock()
	if l := lv.runs[id]; l != nil {
		return l.link
	}
	return nil
}

// Attempts returns the attempts that may still have processes.
func (lv *Live) Attempts() []LiveAttempt {
	lv.mu.Lock()
	defer lv.mu.Unlock()
	attempts := make([]LiveAttempt, 0, len(lv.runs))
	for id, l := range lv.runs {
		attempts = append(attempts, LiveAttempt{Run: id, Attempt: l.attempt, Wrappers: l.wrappers})
	}
	return attempts
}

// Environ returns the environment that a live run was started with, as it was given, not as one of
// its processes reports it.
func (lv *Live) Environ(ctx context.Context, r *agency.Run) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, environTimeout)
	defer cancel()
	link, err := lv.mustLink(ctx, r)
	if err != nil {
		return nil, err
	}
	env, err := link.Environ(ctx)
	if ctx.Err() != nil {
		return nil, agency.Errorf(agency.CodeInvalidState, "the wrapper of %s cannot report the environment of its run", r.Ref()).
			WithHint("it may be older than this daemon: agency resume --restart %s", r.Ref())
	}
	return env, err
}

// mustLink is awaitLink with an error when no wrapper connects.
func (lv *Live) mustLink(ctx context.Context, r *agency.Run) (Link, error) {
	link := lv.awaitLink(ctx, r.ID)
	if link == nil {
		return nil, agency.Errorf(agency.CodeInvalidState, "the wrapper of %s is not connected", r.Ref()).WithHint("agency show %s", r.Ref())
	}
	return link, nil
}

// hasEndedSession reports whether the session of an attempt was ended.
func (lv *Live) hasEndedSession(l *live) bool {
	lv.mu.Lock()
	defer lv.mu.Unlock()
	return l.sessionEnded
}

// setSessionEnded records that the session of an attempt was ended.
func (lv *Live) setSessionEnded(l *live) {
	lv.mu.Lock()
	defer lv.mu.Unlock()
	l.sessionEnded = true
}
