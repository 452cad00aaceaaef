package scheduler

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"agency"
	"agency/internal/service"
)

// ResultStore is the part of the record that Results works with.
type ResultStore interface {
	// UnreportedSessions are those of agency's own that ReportSession was not called for, oldest first.
	UnreportedSessions(ctx context.Context) ([]agency.Session, error)
	// Session is one session; none is agency.CodeSessionNotFound.
	Session(ctx context.Context, id agency.SessionID) (*agency.Session, error)
	// SessionSince is a session and those of its agents that changed after a time, all for the zero time.
	SessionSince(ctx context.Context, id agency.SessionID, since time.Time) (*agency.Session, []agency.SessionAgent, error)
	// AddResult keeps what an agent came to, once.
	AddResult(ctx context.Context, id agency.SessionID, agent string, r *agency.AgentResult) error
	SessionResults(ctx context.Context, id agency.SessionID) (map[string]agency.AgentResult, error)
	// ReportSession records that nothing is left to do for a settled session.
	ReportSession(ctx context.Context, id agency.SessionID) error
	Changed() <-chan struct{}
	// SessionsChanged is Changed for the events of sessions alone.
	SessionsChanged() <-chan struct{}
}

// ResultDeps are the parts that Results works with.
type ResultDeps struct {
	Store ResultStore
	// Ended says that nothing more will come of a run, from the record alone. A run that was never made has ended.
	Ended func(ctx context.Context, id agency.RunID) (bool, error)
	// Facts are what a run came to, which git is asked for. A run that was never made is an empty result. It is called from many
	// goroutines at once.
	Facts func(ctx context.Context, id agency.RunID) (agency.AgentResult, error)
	// Tell tells whoever should know that a session has settled, if that needs nobody. It is called from many goroutines at once.
	Tell func(ctx context.Context, s *agency.Session, kind agency.NoticeKind, text string) error
	Log  *slog.Logger
	Now  func() time.Time
}

// How Results goes about it.
const (
	lookPause  = 100 * time.Millisecond // between two looks, however much happens
	lookEvery  = 15 * time.Second       // when nothing happens
	factsTime  = time.Minute            // for what git says of one run
	endTimeout = time.Minute            // for the run of a final agent to end
	retryFirst = time.Second
	retryMost  = 10 * time.Minute

	factsAtOnce   = 8 // runs that git is asked about
	factsEachOnce = 2 // those of one session among them
)

// Results looks after what follows from a session. It finds out what each agent came to once it is final; it writes the
// report when the session has settled, and tells who should know. What is done stands in the
// record, and everything else is done again after a crash: with the same results, the same report, and messages that are known by
// their ids.
//
// One loop keeps up with the record. Whatever takes git is done beside it, for each session by itself, so that no session waits for
// another one's repository.
type Results struct {
	ResultDeps
	sessions map[agency.SessionID]*outcome // of the loop alone
	found    chan found                    // what was done beside the loop
	slots    chan struct{}                 // taken while git is asked
	work     service.Background
}

// outcome is what is known of one session.
type outcome struct {
	session   agency.Session         // as of the newest change that was read; empty before the first
	agents    []agency.SessionAgent  // by position
	known     map[string]bool        // agents whose results are in the record
	open      []*agency.SessionAgent // agents that are final and whose results are not
	busy      bool                   // something is being done beside the loop
	failures  int                    // in a row
	notBefore time.Time
}

// NewResults makes Results. It does nothing until Start.
func NewResults(deps ResultDeps) *Results {
	return &Results{ResultDeps: deps, found: make(chan found), slots: make(chan struct{}, factsAtOnce)}
}

// Start begins to look, with what is left from before. The second Start does nothing.
func (r *Results) Start(ctx context.Context) error {
	return r.work.Start(ctx, func(ctx context.Context) error {
		r.work.Go(func() { r.run(ctx) })
		return nil
	})
}

// Stop ends the looking and waits for that. It may be called at any time, and twice.
func (r *Results) Stop() { r.work.Stop() }

func (r *Results) run(ctx context.Context) {
	r.sessions = map[agency.SessionID]*outcome{} // the record has all of it
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
			changed = nil // only a new session brings something to do
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

// pause is how long nothing is to be done when nothing happens: until the first session that was put off has its turn.
func (r *Results) pause() time.Duration {
	pause := lookEvery
	for _, o := range r.sessions {
		if !o.busy && !o.notBefore.IsZero() {
			pause = min(pause, max(o.notBefore.Sub(r.Now()), lookPause))
		}
	}
	return pause
}

// look does what there is to do for every session.
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
		if wait := o.notBefore.Sub(r.Now()); o.busy || wait > 0 && wait <= retryMost { // more is from before the clock was set back
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

// putOff has a session wait for its next turn after a failure.
func (r *Results) putOff(ctx context.Context, id agency.SessionID, o *outcome, err error) {
	if ctx.Err() != nil {
		return
	}
	o.notBefore = r.Now().Add(min(retryFirst<<min(o.failures, 10), retryMost))
	o.failures++
	r.Log.Warn("look after session", "session", id, "err", err, "again", o.notBefore)
}

// keepUp reads what changed of a session. Where nothing changed it does nothing.
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
