package plan

import (
	"cmp"
	"slices"

	"agency"
)

// Changes returns the agents that a later plan adds, changes and removes, in the order of the later
// plan; those that it removes come last. Both plans are filled. The path of a prompt, the wave and
// the position of an agent do not count, and neither does how its work lands: it makes no other
// work.
func Changes(before, later *agency.Plan) []agency.PlanChange {
	was := make(map[string]*agency.PlanAgent, len(before.Agents))
	for i := range before.Agents {
		was[before.Agents[i].ID] = &before.Agents[i]
	}
	changes := []agency.PlanChange{}
	for i := range later.Agents {
		a := &later.Agents[i]
		old := was[a.ID]
		delete(was, a.ID)
		if old == nil {
			changes = append(changes, agency.PlanChange{Agent: a.ID, Change: agency.AgentAdded, Keys: []string{}})
		} else if keys := changedKeys(old, a); len(keys) > 0 {
			changes = append(changes, agency.PlanChange{Agent: a.ID, Change: agency.AgentChanged, Keys: keys})
		}
	}
	for i := range before.Agents {
		if id := before.Agents[i].ID; was[id] != nil {
			changes = append(changes, agency.PlanChange{Agent: id, Change: agency.AgentRemoved, Keys: []string{}})
		}
	}
	return changes
}

// Kept returns the agents of a later plan that need not run again: those that were complete by the
// plan before, and that neither changed nor come after one that is not kept.
func Kept(later *agency.Plan, changes []agency.PlanChange, complete map[string]bool) map[string]bool {
	kept := make(map[string]bool, len(later.Agents))
	byWave := make([]*agency.PlanAgent, len(later.Agents)) // each agent after all that it comes after
	for i := range later.Agents {
		byWave[i] = &later.Agents[i]
		kept[byWave[i].ID] = complete[byWave[i].ID]
	}
	for _, c := range changes {
		delete(kept, c.Agent)
	}
	slices.SortStableFunc(byWave, func(a, b *agency.PlanAgent) int { return cmp.Compare(a.Wave, b.Wave) })
	for _, a := range byWave {
		if slices.ContainsFunc(a.After, func(id string) bool { return !kept[id] }) {
			delete(kept, a.ID)
		}
	}
	return kept
}

// changedKeys returns the keys of an agent that differ between two plans.
func changedKeys(a, b *agency.PlanAgent) []string {
	sorted := func(ids []string) []string { return slices.Sorted(slices.Values(ids)) }
	headless := func(p *agency.PlanAgent) (set, value bool) {
		return p.Headless != nil, p.Headless != nil && *p.Headless
	}
	setA, headlessA := headless(a)
	setB, headlessB := headless(b)
	keys := []string{}
	for _, field := range []struct {
		key  string
		same bool
	}{
		{"name", a.Name == b.Name},
		{"prompt", a.Prompt == b.Prompt},
		{"base", a.Base == b.Base},
		{"after", slices.Equal(sorted(a.After), sorted(b.After))},
		{"touches", slices.Equal(a.Touches, b.Touches)},
		{"runner", a.Runner == b.Runner},
		{"preset", a.Preset == b.Preset},
		{"model", a.Model == b.Model},
		{"args", slices.Equal(a.Args, b.Args)},
		{"tags", slices.Equal(a.Tags, b.Tags)},
		{"headless", setA == setB && headlessA == headlessB},
		{"mode", a.Mode == b.Mode},
		{"sandbox", a.Sandbox == b.Sandbox},
		{"resources", a.Resources == b.Resources},
		{"network", a.Network == b.Network},
		{"timeout", a.Timeout == b.Timeout},
		{"idle_timeout", a.IdleTimeout == b.IdleTimeout},
		{"retries", a.Retries == b.Retries},
		{"done_when", a.DoneWhen == b.DoneWhen},
	} {
		if !field.same {
			keys = append(keys, field.key)
		}
	}
	return keys
}
