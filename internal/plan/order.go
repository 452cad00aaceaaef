package plan

import (
	"maps"
	"slices"
	"strings"

	"agency"
	"agency/internal/plain"
)

// Fill fills in what a plan leaves open: the default limits and rules, names, the dependencies that
// follow from waves, and the waves that follow from dependencies. An agent with a Wave and a nil
// After comes after all agents of the nearest lower wave. Ids and dependencies without a valid
// order are E_PLAN_INVALID, as in Check.
func Fill(p *agency.Plan) error {
	if p.MaxParallel == 0 {
		p.MaxParallel = agency.DefaultParallel
	}
	if p.Limits == nil {
		p.Limits = map[string]int{}
	}
	if p.OnFailure == "" {
		p.OnFailure = agency.StopOnFailure
	}
	if p.Agents == nil {
		p.Agents = []agency.PlanAgent{}
	}
	for i := range p.Agents {
		a := &p.Agents[i]
		if a.Name == "" {
			a.Name = a.ID
		}
		if a.Base == "" {
			a.Base = p.Base
		}
		if a.DoneWhen == "" {
			a.DoneWhen = agency.DoneWhenReady
		}
		if a.Land == agency.LandByNone {
			a.Land = ""
		}
		for _, list := range []*[]string{&a.Args, &a.Tags, &a.Touches} {
			if *list == nil {
				*list = []string{}
			}
		}
	}
	g, err := graph(p)
	if err != nil {
		return err
	}
	if err := fillWaves(p, g); err != nil {
		return err
	}
	for i := range p.Agents {
		if p.Agents[i].After == nil {
			p.Agents[i].After = []string{}
		}
	}
	return nil
}

// fillWaves sets the depth of each agent without a wave, and then the dependencies of each agent
// that has only a wave. Waves that contradict written dependencies are refused before others follow
// from them.
func fillWaves(p *agency.Plan, g *planGraph) error {
	given := make([]bool, len(p.Agents))
	for i := range p.Agents {
		given[i] = p.Agents[i].Wave != 0
	}
	for _, i := range g.order {
		a := &p.Agents[i]
		if given[i] {
			continue
		}
		a.Wave = 1
		for _, dependency := range g.after[i] {
			a.Wave = max(a.Wave, p.Agents[dependency].Wave+1)
		}
	}
	if err := validateWaves(p, g); err != nil {
		return err
	}
	waves := map[int][]string{}
	for i := range p.Agents {
		waves[p.Agents[i].Wave] = append(waves[p.Agents[i].Wave], p.Agents[i].ID)
	}
	numbers := slices.Sorted(maps.Keys(waves))
	for i := range p.Agents {
		a := &p.Agents[i]
		if !given[i] || a.After != nil {
			continue
		}
		if lower, _ := slices.BinarySearch(numbers, a.Wave); lower > 0 {
			a.After = slices.Clip(waves[numbers[lower-1]]) // shared: a copy for each agent of a large wave would use too much memory
		}
	}
	return nil
}

// planGraph is the graph of dependencies, by position in the plan.
type planGraph struct {
	after [][]int
	order []int // all agents, each after its dependencies
}

// graph checks the ids and the dependencies, and orders the agents.
func graph(p *agency.Plan) (*planGraph, error) {
	ids, err := positions(p)
	if err != nil {
		return nil, err
	}
	var faults Faults
	g := &planGraph{after: make([][]int, len(p.Agents))}
	total := 0
	for i := range p.Agents {
		a := &p.Agents[i]
		if total += len(a.After); total > agency.MaxDependencies {
			return nil, agentFault(p, i, "after", "the plan has more than %d dependencies", agency.MaxDependencies).
				WithHint("put one agent between two groups: it comes after all of the first, and all of the second come after it")
		}
		g.after[i] = make([]int, 0, len(a.After))
		seen := make(map[string]bool, len(a.After))
		for _, id := range a.After {
			j, known := ids[id]
			switch {
			case id == a.ID:
				err = agentFault(p, i, "after", "agent %q comes after itself", id).WithHint("remove it from its own after")
			case seen[id]:
				err = agentFault(p, i, "after", "agent %q names %q twice in after", a.ID, id).WithHint("name it once")
			case !known:
				err = unknownAgent(p, i, id, ids)
			default:
				err = nil
			}
			if err != nil && !faults.Add(err) {
				return nil, faults
			}
			if err != nil {
				continue
			}
			seen[id] = true
			g.after[i] = append(g.after[i], j)
		}
	}
	if len(faults) > 0 {
		return nil, faults
	}
	cycle := g.sort()
	if cycle == nil {
		return g, nil
	}
	names := make([]string, 0, len(cycle))
	for _, i := range cycle {
		names = append(names, p.Agents[i].ID)
	}
	const most = 20 // to show
	shown := names
	if len(shown) > most {
		shown = slices.Concat(names[:most/2], []string{"..."}, names[len(names)-most/2:])
	}
	return nil, agentFault(p, cycle[0], "after", "agents wait for each other in a circle: %s", strings.Join(shown, " -> ")).
		WithHint("each agent waits for the next in this list; remove one from the after of another").
		WithDetail("cycle", names)
}

func unknownAgent(p *agency.Plan, i int, id string, ids map[string]int) error {
	known := make([]string, 0, len(p.Agents))
	for k := range p.Agents {
		if k != i {
			known = append(known, p.Agents[k].ID)
		}
	}
	err := agentFault(p, i, "after", "agent %q comes after %q, and the plan has no such agent", p.Agents[i].ID, plain.Clip(id))
	for spelled := range ids {
		if strings.EqualFold(spelled, id) {
			return err.WithHint("did you mean %s?", spelled)
		}
	}
	if near := plain.Nearest(id, known); near != "" {
		return err.WithHint("did you mean %s?", near)
	}
	if len(known) == 0 {
		return err.WithHint("leave out after: there is no other agent")
	}
	return err.WithHint("the first of its agents are %s", strings.Join(known[:min(len(known), 5)], ", "))
}

// sort orders the agents, or returns a cycle: each agent is followed by one of its dependencies,
// and the last is the first.
func (g *planGraph) sort() (cycle []int) {
	const (
		fresh = iota
		open
		done
	)
	state := make([]int, len(g.after))
	type step struct{ at, next int }
	for start := range g.after {
		if state[start] != fresh {
			continue
		}
		state[start] = open
		for path := []step{{at: start}}; len(path) > 0; {
			top := &path[len(path)-1]
			if top.next == len(g.after[top.at]) {
				state[top.at] = done
				g.order = append(g.order, top.at)
				path = path[:len(path)-1]
				continue
			}
			dependency := g.after[top.at][top.next]
			top.next++
			switch state[dependency] {
			case fresh:
				state[dependency] = open
				path = append(path, step{at: dependency})
			case open:
				first := slices.IndexFunc(path, func(s step) bool { return s.at == dependency })
				for _, s := range path[first:] {
					cycle = append(cycle, s.at)
				}
				return append(cycle, dependency)
			}
		}
	}
	return nil
}

// bits is a set of positions.
type bits []uint64

func (b bits) has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }
func (b bits) add(i int)      { b[i/64] |= 1 << (i % 64) }

// ancestors returns, for each agent, all agents that it comes after, directly or through others.
func (g *planGraph) ancestors() []bits {
	words := (len(g.after) + 63) / 64
	all := make([]bits, len(g.after))
	for _, i := range g.order {
		all[i] = make(bits, words)
		for _, dependency := range g.after[i] {
			all[i].add(dependency)
			for w, more := range all[dependency] {
				all[i][w] |= more
			}
		}
	}
	return all
}
