package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"agency"
	"agency/internal/schedule"
)

const (
	// tryAgain is the delay after a failure through no fault of a session, such as a full disk.
	tryAgain = time.Second
	// look is the time between two looks at everything.
	look = time.Minute
	// drain limits how long Stop waits for work in progress. The next start settles the rest.
	drain = 5 * time.Second
)

// liveSession is an active session. Only the loop touches it.
type liveSession struct {
	*schedule.State
	env      []string
	envLost  error                // why its environment is lost; nil when it is there
	session  time.Time            // UpdatedAt of the record from which the session was read
	agents   []time.Time          // likewise, of each agent
	failed   map[int]error        // starts that failed, until the consequence is decided
	measured map[int]*measurement // measurements, until they are applied
	bases    *bases
	life     context.Context // of the work that begins agents; it ends when the session is cancelled
	end      context.CancelFunc
	runs     map[int]agency.RunID // the runs whose changes matter
	holds    map[string]time.Time
	due      time.Time // when to look even if nothing happens; zero is never
}

// agentRef is one agent of a session.
type agentRef struct {
	session agency.SessionID
	agent   int
}

// measurement is the activity of an attempt at a time.
type measurement struct {
	run      agency.RunID
	attempt  int
	activity agency.Activity
	at       time.Time
}

// note is a message to the loop from the work outside of it.
type note struct {
	session     agency.SessionID
	changed     bool // another caller changed the record
	resumed     bool // likewise; what waited for the user is tried again
	agent       int
	record      *agency.SessionAgent // its record after a change; nil is unchanged
	state       *agency.Session      // its state after that change
	over        bool                 // the action for the agent has ended
	failure     error                // the error of its start
	measurement *measurement
}

func (s *Scheduler) enqueue(n note) {
	s.mu.Lock()
	s.notes = append(s.notes, n)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default: // a wake-up is already requested
	}
}

func (s *Scheduler) drain() []note {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.notes
	s.notes = nil
	return taken
}

// Start continues every running session, from the record alone, until Stop.
func (s *Scheduler) Start(ctx context.Context) error { return s.looping.Start(ctx, s.goOn) }

func (s *Scheduler) goOn(ctx context.Context) error {
	s.ctx = ctx
	seq, err := s.Store.LastSeq(ctx)
	if err != nil {
		return fmt.Errorf("start the scheduler: %w", err)
	}
	live, err := s.Store.Sessions(ctx, agency.SessionFilter{Live: true})
	if err != nil {
		return fmt.Errorf("start the scheduler: %w", err)
	}
	if err := s.tidy(live); err != nil {
		return fmt.Errorf("start the scheduler: %w", err)
	}
	for i := range live {
		if !live[i].External {
			s.enqueue(note{session: live[i].ID, changed: true})
		}
	}
	l := loop{Scheduler: s, live: map[agency.SessionID]*liveSession{}, agentOf: map[agency.RunID]agentRef{}, left: map[string]time.Time{}}
	s.looping.Go(func() { l.run(ctx, seq) })
	return nil
}

// Stop ends the scheduling and waits for it; agents continue. It is idempotent.
func (s *Scheduler) Stop() {
	s.starts.close()
	s.stops.close()
	s.lands.close()
	s.looping.Stop()
	ended := make(chan struct{})
	go func() { s.work.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(drain):
	}
}

// loop decides for all sessions. It does nothing that takes long.
type loop struct {
	*Scheduler
	live    map[agency.SessionID]*liveSession
	agentOf map[agency.RunID]agentRef
	left    map[string]time.Time // by runner: until when it accepts no work, from the limits of settled sessions' agents
}

func (l *loop) run(ctx context.Context, seq int64) {
	// After a clock change, planned times come earlier or later than computed.
	clock := time.NewTicker(look)
	defer clock.Stop()
	for everyone := false; ctx.Err() == nil; {
		changed := l.Store.Changed()
		touched := map[agency.SessionID]bool{}
		ids, newest, err := l.changedRuns(ctx, seq)
		if err != nil {
			l.complain("read changed runs", err)
		} else {
			seq = newest
		}
		for _, id := range ids {
			if ref, ours := l.agentOf[id]; ours {
				l.live[ref.session].DropFacts(ref.agent)
				touched[ref.session] = true
			}
		}
		for _, n := range l.drain() {
			l.handle(ctx, &n)
			touched[n.session] = true
		}
		now := l.Now()
		for id, d := range l.live {
			if everyone || !d.due.IsZero() && !d.due.After(now) {
				d.DropAllFacts() // the passing of time shows only inactivity
				touched[id] = true
			}
		}
		for _, id := range slices.Sorted(maps.Keys(touched)) {
			if d := l.live[id]; d != nil {
				l.advance(ctx, d)
			}
		}
		if len(l.live) == 0 {
			changed = nil // only a note adds a session
		}
		everyone = l.wait(ctx, changed, clock.C)
	}
}

// changedRuns returns the runs with events after seq. While no session is active, no run matters:
// opening a session reads its past.
func (l *loop) changedRuns(ctx context.Context, seq int64) (ids []agency.RunID, newest int64, err error) {
	if len(l.live) == 0 {
		newest, err = l.Store.LastSeq(ctx)
		return nil, newest, err
	}
	return l.Store.ChangedRuns(ctx, seq)
}

// wait returns when something happened or is due. It returns true when it is time to look at
// everything.
func (l *loop) wait(ctx context.Context, changed <-chan struct{}, clock <-chan time.Time) bool {
	pause, now := look, l.Now()
	for _, d := range l.live {
		if !d.due.IsZero() {
			pause = min(pause, d.due.Sub(now))
		}
	}
	timer := time.NewTimer(max(pause, time.Millisecond))
	defer timer.Stop()
	select {
	case <-changed:
	case <-l.wake:
	case <-timer.C:
	case <-clock:
		return true
	case <-ctx.Done():
	}
	return false
}

func (s *Scheduler) complain(what string, err error, args ...any) {
	if s.ctx.Err() == nil {
		s.Log.Error(what, append(args, "err", err)...)
	}
}

// handle processes a note.
func (l *loop) handle(ctx context.Context, n *note) {
	if n.changed {
		if err := l.load(ctx, n.session); err != nil {
			l.complain("read session", err, "session", n.session)
			if !agency.IsCode(err, agency.CodeSessionNotFound) {
				l.later(*n)
			}
		}
		if d := l.live[n.session]; d != nil && n.resumed {
			d.bases = newBases()
			l.dropRateLimits(d)
			if d.envLost != nil { // the user may have mended the file
				d.env, d.envLost = l.readEnv(n.session)
			}
		}
		return
	}
	d := l.live[n.session]
	if d == nil {
		return
	}
	if n.record != nil {
		l.put(d, n.state, n.record)
	}
	if n.over {
		d.SetBusy(n.agent, false)
		if n.failure != nil {
			d.failed[n.agent] = n.failure
		}
		if n.measurement != nil {
			d.measured[n.agent] = n.measurement
		}
	}
}

// dropRateLimits ends the limits that the agents of a resumed session have met. Those that agents of
// other sessions have met no longer put off its runners.
func (l *loop) dropRateLimits(resumed *liveSession) {
	now := l.Now()
	resumed.Resume(now)
	runners := map[string]bool{}
	for i := range resumed.Plan.Agents {
		runners[resumed.Plan.Agents[i].Runner] = true
	}
	for runner := range runners {
		delete(l.left, runner)
		for _, d := range l.live {
			d.DropRateLimit(runner, now)
			delete(d.holds, runner)
		}
	}
}

// later repeats a note after a pause.
func (s *Scheduler) later(n note) {
	s.work.Go(func() {
		select {
		case <-time.After(tryAgain):
			s.enqueue(n)
		case <-s.ctx.Done():
		}
	})
}

// load reads a session from the record, or the changes that another caller made to it.
func (l *loop) load(ctx context.Context, id agency.SessionID) error {
	state, agents, err := l.Store.SessionSince(ctx, id, time.Time{})
	if err != nil {
		return err
	}
	if state.Status.Final() || state.External {
		l.drop(id)
		return nil
	}
	d := l.live[id]
	if d == nil {
		if d, err = l.open(ctx, state, agents); err != nil {
			return err
		}
		l.live[id] = d
	}
	for i := range agents {
		l.put(d, state, &agents[i])
	}
	l.put(d, state, nil)
	return nil
}

// open adds a session to the active ones.
func (l *loop) open(ctx context.Context, state *agency.Session, agents []agency.SessionAgent) (*liveSession, error) {
	data, err := l.Store.SessionPlan(ctx, state.ID)
	if err != nil {
		return nil, err
	}
	var plan agency.Plan
	if err := json.Unmarshal(data, &plan); err != nil {
		return nil, fmt.Errorf("read the plan of session %s: %w", state.ID, err)
	}
	if len(plan.Agents) != len(agents) {
		return nil, fmt.Errorf("session %s has %d agents and its plan %d", state.ID, len(agents), len(plan.Agents))
	}
	env, lost := l.readEnv(state.ID)
	if agency.Exhausted(lost) {
		return nil, fmt.Errorf("read the environment of session %s: %w", state.ID, lost)
	}
	life, end := context.WithCancel(ctx)
	return &liveSession{
		State: schedule.NewState(*state, &plan, agents, l.Retry), env: env, envLost: lost, agents: make([]time.Time, len(agents)),
		failed: map[int]error{}, measured: map[int]*measurement{}, bases: newBases(), life: life, end: end, runs: map[int]agency.RunID{}, holds: map[string]time.Time{},
	}, nil
}

// put applies the record after a change, unless a newer one is known. A nil agent means the session
// only.
func (l *loop) put(d *liveSession, state *agency.Session, a *agency.SessionAgent) {
	if at := state.UpdatedAt; at.After(d.session) {
		d.Session, d.session = *state, at
		if state.CancelAt != nil {
			d.end()
		}
	}
	if a == nil || !state.UpdatedAt.After(d.agents[a.Position]) {
		return
	}
	i := a.Position
	d.agents[i] = state.UpdatedAt
	d.Put(a)
	if run := d.runs[i]; run != a.Run {
		delete(l.agentOf, run)
		d.runs[i] = a.Run
		if a.Run != "" && !a.Status.Final() {
			l.agentOf[a.Run] = agentRef{state.ID, i}
		}
	}
	if a.Status.Final() {
		delete(l.agentOf, a.Run)
	}
}

func (l *loop) drop(id agency.SessionID) {
	d := l.live[id]
	if d == nil {
		return
	}
	for _, run := range d.runs {
		delete(l.agentOf, run)
	}
	addHolds(l.left, d.holds)
	d.end()
	delete(l.live, id)
}
