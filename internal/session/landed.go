package session

import (
	"cmp"
	"context"
	"slices"

	"agency"
	"agency/internal/api"
)

// addLanded adds to the views of agents where their work has landed, or why it has not. The outcome
// of the session's own attempt to land it matters only while nothing landed and no queue has the
// work. Without any of these, the work is a part of what landed of an agent that started from it.
func (all *Sessions) addLanded(ctx context.Context, views []api.SessionAgent, s *agency.Session, plan *agency.Plan, agents []agency.SessionAgent) error {
	if plan == nil {
		return nil
	}
	landings, err := all.Store.SessionLandings(ctx, s.ID)
	if err != nil {
		return err
	}
	entries, err := all.Store.SessionQueue(ctx, s.ID)
	if err != nil {
		return err
	}
	byRun := map[agency.RunID]*api.AgentLanding{}
	first := map[agency.RunID]agency.RunID{} // for a run that continues the work of a removed one, that one
	of := func(id agency.RunID) agency.RunID { return cmp.Or(first[id], id) }
	for i := range entries {
		e := &entries[i]
		if e.InsteadOf != "" {
			first[e.RunID] = of(e.InsteadOf)
		}
		byRun[of(e.RunID)] = &api.AgentLanding{State: string(e.State), Into: e.Target, Why: e.Reason}
	}
	for i := range landings {
		l := &landings[i]
		if in := byRun[of(l.RunID)]; in == nil || agency.QueueState(in.State).Final() { // an open entry is about more work
			byRun[of(l.RunID)] = &api.AgentLanding{State: string(l.State), Into: l.Target, LandingID: l.ID}
		}
	}
	for i := range agents {
		a := &agents[i]
		if views[i].Landed = byRun[a.Run]; a.Run != "" && views[i].Landed == nil && a.Landing.State != "" {
			views[i].Landed = &api.AgentLanding{State: string(a.Landing.State), Why: a.Landing.Note}
		}
	}
	landedWith(views, plan)
	return nil
}

// landedWith marks the agents whose work landed with that of agents that started from it.
func landedWith(views []api.SessionAgent, plan *agency.Plan) {
	position := make(map[string]int, len(views))
	byWave := make([]int, len(views)) // each agent after all that start from it
	for i := range views {
		position[views[i].ID], byWave[i] = i, i
	}
	slices.SortStableFunc(byWave, func(a, b int) int { return cmp.Compare(plan.Agents[b].Wave, plan.Agents[a].Wave) })
	landed := func(a *api.SessionAgent) bool {
		return a.Landed != nil && (a.Landed.State == string(agency.WorkLanded) || a.Landed.State == string(agency.WorkPart))
	}
	for _, i := range byWave {
		if plan.Agents[i].Base != agency.BaseDeps || !landed(&views[i]) {
			continue
		}
		for _, id := range plan.Agents[i].After {
			if before := &views[position[id]]; before.Landed == nil && before.Status == agency.AgentComplete {
				before.Landed = &api.AgentLanding{State: string(agency.WorkPart), Why: views[i].ID}
			}
		}
	}
}
