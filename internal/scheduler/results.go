package scheduler

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"agency"
	"agency/internal/service"
)

// ResultStore is the part of the record that Results uses.
type ResultStore interface {
	// UnreportedSessions returns the sessions of agency's own for which ReportSession was not
	// called, oldest first.
	UnreportedSessions(ctx context.Context) ([]agency.Session, error)
	// Session returns one session; an unknown id is agency.CodeSessionNotFound.
	Session(ctx context.Context, id agency.SessionID) (*agency.Session, error)
	// SessionSince returns a session and those of its agents that changed after a time; the zero
	// time returns all.
	SessionSince(ctx context.Context, id agency.SessionID, since time.Time) (*agency.Session, []agency.SessionAgent, error)
	// AddResult stores the result of an agent, once.
	AddResult(ctx context.Context, id agency.SessionID, agent string, r *agency.AgentResult) error
	SessionResults(ctx context.Context, id agency.SessionID) (map[string]agency.AgentResult, error)
	// ReportSession records that nothing is left to do for a settled session.
	ReportSession(ctx context.Context, id agency.SessionID) error
	Changed() <-chan struct{}
	// SessionsChanged is Changed for the events of sessions alone.
	SessionsChanged() <-chan struct{}
}

// ResultDeps are the dependencies of Results.
type ResultDeps struct {
	Store ResultStore
	// Ended reports whether a run is over, from the record alone. A run that was never made counts
	// as over.
	Ended func(ctx context.Context, id agency.RunID) (bool, error)
	// Facts returns the result of a run, which it asks git for. A run that was never made has an
	// empty result. It must be safe for concurrent use.
	Facts func(ctx context.Context, id agency.RunID) (agency.AgentResult, error)
	// Notify notifies the user or owner that a session has settled, if no action is needed. It must
	// be safe for concurrent use.
	Notify func(ctx context.Context, s *agency.Session, kind agency.NoticeKind, text string) error
	Log    *slog.Logger
	Now    func() time.Time
}

// The limits of Results.
const (
	lookPause  = 100 * time.Millisecond // minimum time between two checks
	lookEvery  = 15 * time.Second       // maximum time between two checks
	factsTime  = time.Minute            // for git's answers about one run
	endTimeout = time.Minute            // for the run of a final agent to end
	retryFirst = time.Second
	retryMost  = 10 * time.Minute

	reportTries = 4 // of writing the report, before the session ends without one

	factsAtOnce   = 8 // runs examined with git
	factsEachOnce = 2 // of one session among them
)

// Results does the work that follows a session. It determines the result of each agent once it is
// final. When the session has settled, it writes the report and sends the notice. Finished work is
// in the record. After a crash everything else is repeated, with the same results, the same report,
// and messages that are recognized by their ids.
//
// One loop follows the record. Everything that needs git runs outside the loop, separately for each
// session, so that no session waits for another one's repository.
type Results struct {
	ResultDeps
	sessions map[agency.SessionID]*outcome // used by the loop alone
	found    chan found                    // results of the work outside the loop
	slots    chan struct{}                 // held during calls of git
	work     service.Background
}

// outcome is the knowledge of one session.
type outcome struct {
	session   agency.Session         // as of the newest change that was read; empty before the first
	agents    []agency.SessionAgent  // by position
	known     map[string]bool        // agents whose results are in the record
	open      []*agency.SessionAgent // final agents whose results are not in the record
	busy      bool                   // work outside the loop is in progress
	failures  int                    // in a row
	unwritten int                    // how often the report could not be written
	notBefore time.Time
}

// NewResults returns Results that do nothing until Start.
func NewResults(deps ResultDeps) *Results {
	return &Results{ResultDeps: deps, found: make(chan found), slots: make(chan struct{}, factsAtOnce)}
}

// Start begins the work, first with what is left from before. A second Start does nothing.
func (r *Results) Start(ctx context.Context) error {
	return r.work.Start(ctx, func(ctx context.Context) error {
		r.work.Go(func() { r.run(ctx) })
		return nil
	})
}

// Stop ends the work and waits for it. It may be called at any time, and twice.
func (r *Results) Stop() { r.work.Stop() }

func (r *Results) run(ctx context.Context) {
	r.sessions = map[agency.SessionID]*outcome{} // the record holds all of it
	for {
		changed, sessions := r.Store.Changed(), r.Store.SessionsChanged()
		if err := r.look(ctx); err != nil && ctx.Err() == nil {
			r.Log.Warn("look after sessions", "err", err)
		}
		select {
		case <-time.After(lookPause):
		case <-ctx.Done():
			return
		}
		if len(r.sessions) == 0 {
			changed = nil // only a new session adds work
		}
		select {
		case <-changed:
		case <-sessions:
		case <-time.After(r.pause()):
		case f := <-r.found:
			r.take(ctx, &f)
		case <-ctx.Done():
			return
		}
	}
}

// pause returns how long to wait if nothing happens: until the first session that was put off is
// due.
func (r *Results) pause() time.Duration {
	pause := lookEvery
	for _, o := range r.sessions {
		if !o.busy && !o.notBefore.IsZero() {
			pause = min(pause, max(o.notBefore.Sub(r.Now()), lookPause))
		}
	}
	return pause
}

// look does the work that is due for every session.
func (r *Results) look(ctx context.Context) error {
	sessions, err := r.Store.UnreportedSessions(ctx)
	if err != nil {
		return err
	}
	left := make(map[agency.SessionID]bool, len(sessions))
	for i := range sessions {
		s := &sessions[i]
		left[s.ID] = true
		o := r.sessions[s.ID]
		if o == nil {
			o = &outcome{}
			r.sessions[s.ID] = o
		}
		if wait := o.notBefore.Sub(r.Now()); o.busy || wait > 0 && wait <= retryMost { // a longer wait is from before the clock was set back
			continue
		}
		o.notBefore = time.Time{}
		err := r.keepUp(ctx, s, o)
		if err == nil {
			err = r.begin(ctx, o)
		}
		if err != nil {
			r.putOff(ctx, s.ID, o, err)
		}
	}
	for id := range r.sessions {
		if !left[id] {
			delete(r.sessions, id)
		}
	}
	return ctx.Err()
}

// putOff delays a session's next turn after a failure.
func (r *Results) putOff(ctx context.Context, id agency.SessionID, o *outcome, err error) {
	if ctx.Err() != nil {
		return
	}
	o.notBefore = r.Now().Add(min(retryFirst<<min(o.failures, 10), retryMost))
	o.failures++
	r.Log.Warn("look after session", "session", id, "err", err, "again", o.notBefore)
}

// keepUp reads the changes of a session, if there are any.
func (r *Results) keepUp(ctx context.Context, s *agency.Session, o *outcome) error {
	if o.known == nil {
		results, err := r.Store.SessionResults(ctx, s.ID)
		if err != nil {
			return err
		}
		o.known = make(map[string]bool, len(results))
		for agent := range results {
			o.known[agent] = true
		}
	}
	if s.UpdatedAt.Equal(o.session.UpdatedAt) {
		return nil
	}
	now, changed, err := r.Store.SessionSince(ctx, s.ID, o.session.UpdatedAt)
	if agency.IsCode(err, agency.CodeSessionNotFound) {
		return nil // it was removed meanwhile
	}
	if err != nil {
		return err
	}
	for i := range changed {
		at, known := slices.BinarySearchFunc(o.agents, changed[i].Position, func(a agency.SessionAgent, position int) int { return a.Position - position })
		if !known {
			o.agents = slices.Insert(o.agents, at, changed[i])
		}
		o.agents[at] = changed[i]
	}
	o.session = *now
	o.lookOpen()
	return nil
}

func (o *outcome) lookOpen() {
	o.open = nil
	for i := range o.agents {
		if a := &o.agents[i]; a.Status.Final() && a.Run != "" && !o.known[a.ID] {
			o.open = append(o.open, a)
		}
	}
}
