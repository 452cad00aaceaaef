package scheduler

import (
	"agency"
	"agency/internal/killpoint"
)

// landingRuns returns the run of a complete agent, and those of the complete agents that started
// from its result and whose work is to land too.
func landingRuns(d *liveSession, agent int) []AgentRun {
	runs := []AgentRun{{d.Agent(agent).ID, d.Agent(agent).Run}}
	for _, i := range d.StartedFrom(agent) {
		if a := d.Agent(i); d.Plan.Agents[i].Land != "" && a.Status == agency.AgentComplete && a.Run != "" {
			runs = append(runs, AgentRun{a.ID, a.Run})
		}
	}
	return runs
}

// land lands the work of a complete agent, and records how that ended. A daemon that was killed in
// between leaves it to the next one, which finds the landing or the place in the queue.
func (s *Scheduler) land(j *job) {
	killpoint.At("scheduler.land.begun")
	landing, err := s.Lander.Land(j.life, LandRequest{Session: &j.session, Agent: &j.agent, By: j.plan.Land, Runs: j.landing, Env: j.env})
	if err != nil {
		if j.life.Err() == nil { // else the session is cancelled, or the daemon stops
			s.complain("land the work of an agent", err, "session", j.session.ID, "agent", j.agent.ID)
			s.pause()
		}
		s.over(j, nil)
		return
	}
	killpoint.At("scheduler.land.made")
	j.action.Landing = landing
	if s.begin(j, "") {
		killpoint.At("scheduler.land.recorded")
		s.over(j, nil)
	}
}
