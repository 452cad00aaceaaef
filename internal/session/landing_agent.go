package session

import (
	"context"
	"slices"
	"strings"

	"agency"
	"agency/internal/config"
	"agency/internal/lander"
	"agency/internal/plain"
	"agency/internal/queuer"
	"agency/internal/scheduler"
	"agency/internal/verify"
)

// Land lands the work of an agent for the user or the run that started its session: in a queue,
// what a run started waits for an approval.
func (ln *Landings) Land(ctx context.Context, req scheduler.LandRequest) (agency.AgentLanding, error) {
	landing, err := ln.before(ctx, &req)
	if err == nil && landing.State == "" {
		landing, err = ln.part(ctx, &req)
	}
	switch {
	case err != nil || landing.State != "":
	case req.By == agency.LandByQueue:
		landing.State = agency.WorkQueued
		_, err = ln.Queuer.Add(ctx, &queuer.AddRequest{Runs: []string{string(req.Agent.Run)}, By: req.Session.Owner, Env: req.Env})
	default:
		landing.State = agency.WorkLanded
		err = ln.merge(ctx, &req)
	}
	switch {
	case err == nil:
		return landing, nil
	case ctx.Err() != nil:
		return agency.AgentLanding{}, ctx.Err()
	}
	e := agency.AsError(err)
	if _, landed := e.Details["landing"]; e.Code == agency.CodeNothingToLand && landed {
		return agency.AgentLanding{State: agency.WorkLanded}, nil // it was settled just now
	}
	if e.Code == agency.CodeNothingToLand {
		return agency.AgentLanding{State: agency.WorkNothing}, nil
	}
	if e.Code == agency.CodeMergeConflict {
		if err := ln.FlagConflict(ctx, string(req.Agent.Run), e.Message); err != nil {
			return agency.AgentLanding{}, err
		}
	}
	note := e.Message
	if e.Hint != "" {
		note += "; " + e.Hint
	}
	return agency.AgentLanding{State: agency.WorkRefused, Note: plain.OneLine(note)}, nil
}

// before returns what was done since the agent was complete, by a daemon that was killed then or by
// the user.
func (ln *Landings) before(ctx context.Context, req *scheduler.LandRequest) (agency.AgentLanding, error) {
	since := req.Agent.CompletedAt
	landings, err := ln.Store.Landings(ctx, req.Agent.Run)
	if err != nil {
		return agency.AgentLanding{}, err
	}
	if slices.ContainsFunc(landings, func(l agency.Landing) bool {
		return !l.CreatedAt.Before(*since) && l.State != agency.LandingMoving && l.State != agency.LandingFailed
	}) {
		return agency.AgentLanding{State: agency.WorkLanded}, nil
	}
	entries, err := ln.Store.SessionQueue(ctx, req.Session.ID)
	if inQueue(entries, req.Agent) {
		return agency.AgentLanding{State: agency.WorkQueued}, err
	}
	return agency.AgentLanding{}, err
}

// inQueue reports whether a landing queue got the work of an agent since it was complete, and has it
// still or has landed it. entries are those of the agent's session, the oldest first; the work of a
// removed run is also in the entries of the runs that continue it.
func inQueue(entries []agency.QueueEntry, a *agency.SessionAgent) bool {
	runs := map[agency.RunID]bool{a.Run: true}
	return slices.ContainsFunc(entries, func(e agency.QueueEntry) bool {
		runs[e.RunID] = runs[e.RunID] || e.InsteadOf != "" && runs[e.InsteadOf]
		return runs[e.RunID] && !e.AddedAt.Before(orZero(a.CompletedAt)) && (!e.State.Final() || e.State == agency.EntryLanded)
	})
}

// part returns which landing agents have the work of the agent, or that it has none.
func (ln *Landings) part(ctx context.Context, req *scheduler.LandRequest) (agency.AgentLanding, error) {
	runs, agents := make([]*agency.Run, 0, len(req.Runs)), map[agency.RunID]string{}
	for _, of := range req.Runs {
		r, err := ln.Runs.Run(ctx, of.Run)
		if err != nil {
			return agency.AgentLanding{}, err
		}
		runs, agents[r.ID] = append(runs, r), of.Agent
	}
	final, parts, err := ln.Lander.Final(ctx, runs)
	if err != nil {
		return agency.AgentLanding{}, err
	}
	if holders := parts[req.Agent.Run]; len(holders) > 0 {
		ids := make([]string, 0, len(holders))
		for _, r := range holders {
			ids = append(ids, agents[r.ID])
		}
		return agency.AgentLanding{State: agency.WorkPart, Note: strings.Join(ids, ", ")}, nil
	}
	if !slices.ContainsFunc(final, func(r *agency.Run) bool { return r.ID == req.Agent.Run }) {
		return agency.AgentLanding{State: agency.WorkNothing}, nil
	}
	return agency.AgentLanding{}, nil
}

// merge lands the work of an agent at once, if the checks of its target pass.
func (ln *Landings) merge(ctx context.Context, req *scheduler.LandRequest) error {
	cfg, err := config.Load(req.Session.Config, req.Env)
	if err != nil {
		return err
	}
	warn := func(text string) {
		ln.Log.Warn("land the work of an agent", "session", req.Session.ID, "agent", req.Agent.ID, "warning", text)
	}
	var author agency.Environ
	if req.Session.Owner == agency.User {
		author = req.Env
	}
	result, err := ln.Lander.Land(ctx, lander.Request{
		Ref: string(req.Agent.Run), Env: author, Check: ln.Passes(&verify.Request{Env: req.Env, Deny: cfg.Env.Deny, Warn: warn}),
	})
	if err == nil {
		for _, text := range result.Warnings {
			warn(text)
		}
	}
	return err
}
