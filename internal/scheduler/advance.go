package scheduler

import (
	"context"
	"fmt"
	"maps"
	"time"

	"agency"
	"agency/internal/killpoint"
	"agency/internal/schedule"
)

// advance has a session go on as far as it does at once.
func (l *loop) advance(ctx context.Context, d *liveSession) {
	for ctx.Err() == nil {
		clock := schedule.Clock{Now: l.Now(), Elapsed: l.Elapsed}
		late := time.Time{}
		for _, i := range d.MissingFacts() {
			if err := l.see(ctx, d, i, clock.Now); err != nil {
				l.complain("look at run", err, "session", d.Session.ID, "agent", d.Agent(i).ID)
				late = clock.Now.Add(tryAgain)
			}
		}
		d.applyMeasurements(clock)
		clear(d.holds)
		d.AddRateLimits(clock, d.holds)
		actions, next := schedule.Decide(d.State, clock, l.holdAll(clock))
		actions = append(l.unstarted(d, clock), actions...)
		d.due = next
		if !late.IsZero() && (next.IsZero() || late.Before(next)) {
			d.due = late
		}
		again, err := l.do(ctx, d, actions)
		if err != nil {
			l.complain("go on with session", err, "session", d.Session.ID)
			d.due = clock.Now.Add(tryAgain)
			return
		}
		if !again {
			return
		}
	}
}

// see asks how the run of an agent stands.
func (l *loop) see(ctx context.Context, d *liveSession, i int, now time.Time) error {
	o, err := l.Runs.Outcome(ctx, d.Agent(i).Run)
	switch {
	case agency.IsCode(err, agency.CodeRunNotFound):
		d.SetFacts(i, schedule.RunFacts{})
	case err != nil:
		return err
	default:
		d.SetFacts(i, factsOf(o, now))
	}
	return nil
}

// applyMeasurements takes the measurements of those agents of whose runs it is known how they stand.
func (d *liveSession) applyMeasurements(clock schedule.Clock) {
	for i, b := range d.measured {
		if !d.HasFacts(i) {
			continue
		}
		delete(d.measured, i)
		if d.Agent(i).Run == b.run {
			d.Measured(i, b.attempt, b.activity, b.at, clock)
		}
	}
}

// unstarted is what follows from starts that failed, where the record of the run does not tell of it.
func (l *loop) unstarted(d *liveSession, clock schedule.Clock) []schedule.Action {
	var actions []schedule.Action
	for i, failure := range d.failed {
		if !d.HasFacts(i) {
			continue
		}
		delete(d.failed, i)
		if d.HasNewAttempt(i) || d.Agent(i).Status != agency.AgentRunning {
			continue
		}
		e := agency.AsError(failure)
		actions = append(actions, d.Unstarted(i, e.Code, wayOut(e), clock))
	}
	return actions
}

// holdAll finds out until when runners take no work, by what the agents of all sessions met.
func (l *loop) holdAll(clock schedule.Clock) map[string]time.Time {
	maps.DeleteFunc(l.left, func(_ string, until time.Time) bool { return !clock.Ahead(until) })
	all := maps.Clone(l.left)
	for _, d := range l.live {
		addHolds(all, d.holds)
	}
	maps.DeleteFunc(all, func(_ string, until time.Time) bool { return !clock.Ahead(until) })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limited = all
	return all
}

// addHolds keeps the later of two times for each runner.
func addHolds(all, holds map[string]time.Time) {
	for runner, until := range holds {
		if until.After(all[runner]) {
			all[runner] = until
		}
	}
}

// do carries actions out, the first one for each agent: what only changes the record at once and together, the rest beside the
// loop. again says that more may follow at once.
func (l *loop) do(ctx context.Context, d *liveSession, actions []schedule.Action) (again bool, err error) {
	var quick, slow []schedule.Action
	taken, lost := map[int]bool{}, false
	for i := range actions {
		x := &actions[i]
		if taken[x.Agent] {
			continue
		}
		taken[x.Agent] = true
		switch x.Kind {
		case schedule.ActStart, schedule.ActAgain:
			if lost = lost || d.envLost; !d.envLost {
				slow = append(slow, *x)
			}
		case schedule.ActStop, schedule.ActMeasure:
			slow = append(slow, *x)
		case schedule.ActSettle:
			return false, l.settle(ctx, d)
		case schedule.ActNote, schedule.ActRetry, schedule.ActEnd:
			quick = append(quick, *x)
		}
	}
	if len(quick) > 0 {
		if again, err = l.record(ctx, d, quick); err != nil {
			return false, err
		}
	}
	for i := range slow {
		l.dispatch(d, &slow[i])
	}
	if lost {
		return true, l.pauseBare(ctx, d)
	}
	return again, nil
}

// pauseBare pauses a session that has agents to start and has lost the environment to start them in.
func (l *loop) pauseBare(ctx context.Context, d *liveSession) error {
	id := d.Session.ID
	state, err := l.Store.ChangeSession(ctx, id, []string{}, func(s *agency.Session, _ []*agency.SessionAgent) ([]agency.EventDraft, error) {
		if s.Status.Final() || s.Paused != "" || s.CancelAt != nil {
			return nil, nil
		}
		s.Paused = fmt.Sprintf("the environment that its agents start in is lost (%s); run the rest anew: agency session cancel %s, then agency session retry %s",
			l.envPath(id), id, id)
		return []agency.EventDraft{s.EventDraft(agency.SessionChanged)}, nil
	})
	if err != nil {
		return err
	}
	l.put(d, state, nil)
	return nil
}

// record writes actions into the record. It is false when the record has gone on meanwhile, of which a note tells.
func (l *loop) record(ctx context.Context, d *liveSession, actions []schedule.Action) (wrote bool, err error) {
	names := make([]string, len(actions))
	for i := range actions {
		names[i] = d.Agent(actions[i].Agent).ID
	}
	changed := make([]*agency.SessionAgent, len(actions))
	state, err := l.Store.ChangeSession(ctx, d.Session.ID, names, func(s *agency.Session, agents []*agency.SessionAgent) ([]agency.EventDraft, error) {
		drafts := []agency.EventDraft{}
		now, before := l.Now(), s.Paused
		for i, a := range agents {
			changed[i] = a
			if actions[i].Apply(s, a, "", now) {
				drafts = append(drafts, a.EventDraft())
			}
		}
		if s.Paused != before {
			drafts = append(drafts, s.EventDraft(agency.SessionChanged))
		}
		wrote = len(drafts) > 0
		return drafts, nil
	})
	if err != nil {
		return false, err
	}
	killpoint.At("scheduler.recorded")
	for _, a := range changed {
		l.put(d, state, a)
	}
	return wrote, nil
}
