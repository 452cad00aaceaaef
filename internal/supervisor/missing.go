package supervisor

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"agency"
	"agency/internal/plain"
)

// missing returns the error for a reference that means no run: E_RUN_NOT_FOUND with the nearest
// name of a run or of an agent, or with the reason why that agent has no run.
func (rs *Records) missing(ctx context.Context, ref string) error {
	const most = 20_000 // agents that are compared
	agents, err := rs.AgentAddresses(ctx, most)
	if err != nil {
		return err
	}
	missing := agency.Errorf(agency.CodeRunNotFound, "no run is called %q", ref)
	if slash := strings.LastIndexByte(ref, '/'); slash >= 0 {
		return missingAgent(missing, ref[:slash], ref[slash+1:], agents)
	}
	all, err := rs.Runs(ctx, agency.Filter{})
	if err != nil {
		return err
	}
	names := []string{}
	for i := range all {
		names = append(names, all[i].Ref())
	}
	ended := "" // the newest agent of that id, of a session that is over
	for _, a := range agents {
		switch {
		case !a.Running && a.Agent == ref && a.Run != "" && ended == "":
			ended = cmp.Or(a.Name, string(a.Session)) + "/" + ref
		case !a.Running:
		case a.Agent == ref:
			return a.Unbegun()
		case a.Run != "":
			names = append(names, a.Agent)
		}
	}
	if ended != "" {
		return missing.WithHint("did you mean %s? Its session is over, so its name is needed too", ended)
	}
	if near := plain.Nearest(ref, names); near != "" {
		return missing.WithHint("did you mean %s? all runs: agency ls --all-repos --all", near)
	}
	if ref != "" && len(ref) < agency.MinPrefix {
		return missing.WithHint("a part of a name must have %d characters or more; agency ls shows all runs", agency.MinPrefix)
	}
	return missing.WithHint("agency ls --all-repos --all")
}

// missingAgent completes the error for SESSION/AGENT, in the newest session of that name.
func missingAgent(missing *agency.Error, session, agent string, agents []agency.AgentAddress) error {
	sessions, of := []string{}, map[string][]agency.AgentAddress{} // by name, of the newest session, and by id
	for from := 0; from < len(agents); {
		first := agents[from]
		to := from
		for to < len(agents) && agents[to].Session == first.Session {
			to++
		}
		for _, name := range []string{string(first.Session), first.Name} {
			if name != "" && of[name] == nil {
				of[name], sessions = agents[from:to], append(sessions, name)
			}
		}
		from = to
	}
	found, known := of[session]
	mistyped := !known
	if mistyped {
		session = plain.Nearest(session, sessions)
		if found, known = of[session]; !known {
			return missing.WithHint("the sessions there are: agency session ls --all-repos")
		}
	}
	if i := slices.IndexFunc(found, func(a agency.AgentAddress) bool { return a.Agent == agent }); i >= 0 {
		if !mistyped { // the id of its run is recorded before the run
			return found[i].Unbegun()
		}
		return missing.WithHint("did you mean %s/%s?", session, agent)
	}
	ids := make([]string, len(found))
	for i := range found {
		ids[i] = found[i].Agent
	}
	if near := plain.Nearest(agent, ids); near != "" {
		return missing.WithHint("did you mean %s/%s?", session, near)
	}
	return missing.WithHint("the agents of that session: agency session show %s", session)
}
