package scheduler

import (
	"context"
	"encoding/json"
	"fmt"

	"agency"
	"agency/internal/killpoint"
)

// Create records a session with its plan and starts it. The environment is that of its agents.
func (s *Scheduler) Create(ctx context.Context, session *agency.Session, plan *agency.Plan, agents []agency.SessionAgent, env []string) error {
	data, err := json.Marshal(plan)
	if err != nil {
		return err
	}
	// The environment is written before the record, since without it no agent could start. The next
	// start removes one that belongs to no session.
	if err := s.writeEnv(session.ID, env); err != nil {
		return err
	}
	killpoint.At("scheduler.create.env")
	if err := s.Store.CreateSession(ctx, session, agents, data); err != nil {
		_ = s.removeEnv(session.ID)
		return err
	}
	killpoint.At("scheduler.create.recorded")
	s.enqueue(note{session: session.ID, changed: true})
	return nil
}

// Pause makes a session start no more agents. Running agents continue.
func (s *Scheduler) Pause(ctx context.Context, id agency.SessionID, why string) (*agency.Session, error) {
	return s.change(ctx, id, func(session *agency.Session) error {
		switch {
		case session.CancelAt != nil:
			return beingCancelled(id)
		case session.Paused == "":
			session.Paused = why
		}
		return nil
	})
}

// Resume continues a paused session. Agents that wait for the user, for a limit or for another try
// continue at once, whether the session is paused or not.
func (s *Scheduler) Resume(ctx context.Context, id agency.SessionID) (*agency.Session, error) {
	agents, err := s.Store.SessionAgents(ctx, id)
	if err != nil {
		return nil, err
	}
	waiting := []string{}
	for i := range agents {
		if putOff(&agents[i]) {
			waiting = append(waiting, agents[i].ID)
		}
	}
	limited, err := s.atLimit(ctx, id)
	if err != nil {
		return nil, err
	}
	session, err := s.Store.ChangeSession(ctx, id, waiting, func(session *agency.Session, agents []*agency.SessionAgent) ([]agency.EventDraft, error) {
		if err := controls(session); err != nil {
			return nil, err
		}
		switch {
		case session.CancelAt != nil:
			return nil, beingCancelled(id)
		case session.Paused == "" && len(agents) == 0 && !limited:
			return nil, agency.Errorf(agency.CodeInvalidState, "session %s is not paused", id).WithHint("agency session show %s", id)
		}
		session.Paused = ""
		drafts := []agency.EventDraft{session.EventDraft(agency.SessionChanged)}
		for _, a := range agents {
			if !putOff(a) {
				continue
			}
			if a.NotBefore, a.Waits = nil, 0; a.Status == agency.AgentQueued {
				a.Error = ""
			}
			drafts = append(drafts, a.EventDraft())
		}
		return drafts, nil
	})
	if err != nil {
		return nil, err
	}
	killpoint.At("scheduler.changed")
	s.enqueue(note{session: id, changed: true, resumed: true})
	return session, nil
}

// atLimit reports whether an agent of a session that is not paused waits for a rate limit: its own,
// or that of its runner.
func (s *Scheduler) atLimit(ctx context.Context, id agency.SessionID) (bool, error) {
	session, err := s.Store.Session(ctx, id)
	if err != nil || session.Status.Final() || session.External || session.Paused != "" {
		return false, err
	}
	plan, agents, err := s.Plan(ctx, id)
	if err != nil {
		return false, err
	}
	now, runners := s.Now(), s.Limited()
	for i := range agents {
		switch a := &agents[i]; {
		case a.Status.Final():
		case runners[plan.Agents[i].Runner].After(now):
			return true, nil
		case a.Status == agency.AgentRunning:
			o, err := s.Runs.Outcome(ctx, a.Run)
			if agency.IsCode(err, agency.CodeRunNotFound) {
				continue // it is not made yet
			}
			if err != nil {
				return false, err
			}
			if f := factsOf(o, now); f.AtLimit() {
				return true, nil
			}
		}
	}
	return false, nil
}

// putOff reports whether an agent waits for the user before it begins, or for a time between two
// attempts.
func putOff(a *agency.SessionAgent) bool {
	return a.Status == agency.AgentQueued && a.Error != "" || a.Status == agency.AgentRunning && a.NotBefore != nil
}

// Cancel ends a session: queued agents never start, and running ones are stopped. It returns before
// that is done.
func (s *Scheduler) Cancel(ctx context.Context, id agency.SessionID) (*agency.Session, error) {
	return s.change(ctx, id, func(session *agency.Session) error {
		if session.CancelAt == nil {
			now := s.Now()
			session.CancelAt, session.Paused = &now, ""
		}
		return nil
	})
}

// SetParallel changes how many agents of a session run at once. Running agents continue.
func (s *Scheduler) SetParallel(ctx context.Context, id agency.SessionID, n int) (*agency.Session, error) {
	if n < 1 || n > agency.MaxParallelAgents {
		return nil, agency.Errorf(agency.CodeUsage, "%d agents cannot run at once; it can be 1 to %d", n, agency.MaxParallelAgents).WithHint("agency session update %s --max-parallel 3", id)
	}
	return s.change(ctx, id, func(session *agency.Session) error {
		session.MaxParallel = n
		return nil
	})
}

// change edits a running session, and records the event session.changed.
func (s *Scheduler) change(ctx context.Context, id agency.SessionID, edit func(*agency.Session) error) (*agency.Session, error) {
	session, err := s.Store.ChangeSession(ctx, id, []string{}, func(session *agency.Session, _ []*agency.SessionAgent) ([]agency.EventDraft, error) {
		if err := controls(session); err != nil {
			return nil, err
		}
		if err := edit(session); err != nil {
			return nil, err
		}
		return []agency.EventDraft{session.EventDraft(agency.SessionChanged)}, nil
	})
	if err != nil {
		return nil, err
	}
	killpoint.At("scheduler.changed")
	s.enqueue(note{session: id, changed: true})
	return session, nil
}

func beingCancelled(id agency.SessionID) error {
	return agency.Errorf(agency.CodeInvalidState, "session %s is being cancelled", id).WithHint("wait for its end: agency session wait %s", id)
}

// controls refuses to control a session that has settled or is external.
func controls(session *agency.Session) error {
	switch {
	case session.Status.Final():
		e := agency.Errorf(agency.CodeInvalidState, "session %s is %s", session.ID, session.Status)
		if session.External || session.Counts.Complete == session.Counts.Total {
			return e.WithHint("agency session show %s", session.ID)
		}
		return e.WithHint("run again what is not complete: agency session retry %s", session.ID)
	case session.External:
		return agency.Errorf(agency.CodeInvalidState, "the agents of session %s are run by another program", session.ID).
			WithHint("that program reports on them; to give them all up: agency session update %s cancel", session.ID)
	}
	return nil
}

// Plan returns the plan of a session with the current state of its agents.
func (s *Scheduler) Plan(ctx context.Context, id agency.SessionID) (*agency.Plan, []agency.SessionAgent, error) {
	data, err := s.Store.SessionPlan(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	var plan agency.Plan
	if err := json.Unmarshal(data, &plan); err != nil {
		return nil, nil, fmt.Errorf("read the plan of session %s: %w", id, err)
	}
	agents, err := s.Store.SessionAgents(ctx, id)
	if err == nil && len(agents) != len(plan.Agents) {
		if _, err := s.Store.SessionPlan(ctx, id); err != nil { // it was removed between the two
			return nil, nil, err
		}
		err = fmt.Errorf("session %s has %d agents and its plan %d", id, len(agents), len(plan.Agents))
	}
	return &plan, agents, err
}
