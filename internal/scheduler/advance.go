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

// advance performs all steps of a session that are possible at once.
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

// see reads the state of an agent's run.
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

// applyMeasurements applies the measurements of the agents whose runs' state is known.
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

// unstarted returns what follows from failed starts that the record of the run does not show.
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

// holdAll returns until when each runner accepts no work, from the rate limits of all sessions'
// agents.
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

// do executes actions, the first one for each agent: those that only change the record at once and
// together, the rest outside the loop. again reports whether more may follow at once.
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
		case schedule.ActStart, schedule.ActAgain, schedule.ActLand:
			if d.envLost != nil {
				lost = true
			} else {
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

// pauseBare pauses a session that has agents to start or work to land but whose environment is lost.
func (l *loop) pauseBare(ctx context.Context, d *liveSession) error {
	id := d.Session.ID
	state, err := l.Store.ChangeSession(ctx, id, []string{}, func(s *agency.Session, _ []*agency.SessionAgent) ([]agency.EventDraft, error) {
		if s.Status.Final() || s.Paused != "" || s.CancelAt != nil {
			return nil, nil
		}
		s.Paused = fmt.Sprintf("the environment that its agents start in is lost (%v); run the rest anew: agency session cancel %s, then agency session retry %s",
			d.envLost, id, id)
		return []agency.EventDraft{s.EventDraft(agency.SessionChanged)}, nil
	})
	if err != nil {
		return err
	}
	l.put(d, state, nil)
	return nil
}

// record writes actions into the record. It returns false when the record has changed meanwhile,
// which a note reports.
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
