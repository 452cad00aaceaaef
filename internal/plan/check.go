package plan

import (
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"agency"
)

// Check checks a filled plan by itself: ids, dependencies, waves, limits, and that no two agents
// that can run at once touch the same files. Its errors are Faults with E_PLAN_INVALID; their
// details "agent", "position" (from 0) and "key" name the place. It reads no file, no repository
// and no configuration.
func Check(p *agency.Plan) error {
	var faults Faults
	faults.Add(validateSettings(p))
	if len(p.Agents) == 0 {
		faults.Add(agency.Errorf(agency.CodePlanInvalid, "the plan has no agents").WithHint("give it one: agents: [{id: one, prompt: \"fix the login test\"}]"))
		return faults
	}
	prompts := 0
	for i := range p.Agents {
		if !faults.Add(validateAgent(p, i)) {
			return faults
		}
		if prompts += len(p.Agents[i].Prompt); prompts > agency.MaxPromptBytes {
			faults.Add(agentFault(p, i, "prompt", "the prompts of the plan have more than %d bytes together", agency.MaxPromptBytes).
				WithHint("put the material into files of the repository and name them in the prompts"))
			return faults
		}
	}
	g, err := graph(p)
	if err == nil {
		err = validateWaves(p, g)
	}
	if err == nil && len(faults) == 0 {
		err = validateTouches(p, g)
	}
	faults.Add(err)
	return faults.Err()
}

// agentFault returns a fault at a key of one agent.
func agentFault(p *agency.Plan, i int, key, format string, args ...any) *agency.Error {
	return agency.Errorf(agency.CodePlanInvalid, format, args...).
		WithDetail("agent", p.Agents[i].ID).WithDetail("position", i).WithDetail("key", key)
}

// settingFault returns a fault in a setting of the whole plan.
func settingFault(key, format string, args ...any) *agency.Error {
	return agency.Errorf(agency.CodePlanInvalid, format, args...).WithDetail("key", key)
}

func validateSettings(p *agency.Plan) error {
	if problem := agency.LineProblem(p.Name); problem != "" {
		return settingFault("name", "the name of the plan %s", problem).WithHint("a name is one line of at most %d characters", agency.LongestLine)
	}
	if problem := baseProblem(p.Base); problem != "" {
		return settingFault("base", "base %s", problem).WithHint("a branch, tag or commit, or %s for the results of the agents before", agency.BaseDeps)
	}
	if p.MaxParallel < 1 || p.MaxParallel > agency.MaxParallelAgents {
		return settingFault("max_parallel", "max_parallel is %d, not between 1 and %d", p.MaxParallel, agency.MaxParallelAgents).
			WithHint("leave it out for %d", agency.DefaultParallel)
	}
	for _, runner := range slices.Sorted(maps.Keys(p.Limits)) {
		if n := p.Limits[runner]; n < 1 || n > agency.MaxParallelAgents {
			return settingFault("limits", "the limit of %q is %d, not between 1 and %d", agency.Clip(runner), n, agency.MaxParallelAgents).
				WithHint("leave it out for no limit but max_parallel")
		}
	}
	policies := []agency.OnFailure{agency.StopOnFailure, agency.ContinueOnFailure, agency.AskOnFailure}
	if !slices.Contains(policies, p.OnFailure) {
		return settingFault("on_failure", "on_failure is %q", agency.Clip(string(p.OnFailure))).WithHint("one of: stop, continue, ask")
	}
	if len(p.Agents) > agency.MaxAgents {
		return settingFault("agents", "the plan has %d agents, more than %d", len(p.Agents), agency.MaxAgents).WithHint("split it into several plans")
	}
	return nil
}

func validateAgent(p *agency.Plan, i int) error {
	a := &p.Agents[i]
	bad := func(key, format string, args ...any) *agency.Error {
		return agentFault(p, i, key, "agent %q: "+format, append([]any{agency.Clip(a.ID)}, args...)...)
	}
	wrap := func(key string, err error) error {
		e := agency.AsError(err)
		return bad(key, "%s", e.Message).WithHint("%s", e.Hint)
	}
	if err := agency.CheckAgentID(a.ID); err != nil {
		e := agency.AsError(err)
		return agentFault(p, i, "id", "%s", e.Message).WithHint("%s", e.Hint)
	}
	if problem := agency.LineProblem(a.Name); problem != "" {
		return bad("name", "its name %s", problem).WithHint("a name is one line of at most %d characters", agency.LongestLine)
	}
	if err := agency.CheckPrompt(a.Prompt); err != nil {
		key := "prompt"
		if a.PromptPath != "" {
			key = "prompt_path"
		}
		return wrap(key, err)
	}
	for _, tag := range a.Tags {
		if err := agency.CheckWord("tag", tag); err != nil {
			return wrap("tags", err)
		}
	}
	if strings.HasPrefix(a.Model, "-") {
		return bad("model", "the model %q begins with a dash", agency.Clip(a.Model)).WithHint("options of the runner go into args")
	}
	for _, arg := range a.Args {
		if strings.ContainsRune(arg, 0) {
			return bad("args", "an argument holds a NUL byte")
		}
	}
	if problem := baseProblem(a.Base); problem != "" {
		return bad("base", "base %s", problem).WithHint("a branch, tag or commit, or %s for the results of the agents before", agency.BaseDeps)
	}
	for _, limit := range []struct {
		key string
		d   time.Duration
	}{{"timeout", a.Timeout}, {"idle_timeout", a.IdleTimeout}} {
		if limit.d != 0 && (limit.d < time.Second || limit.d > agency.MaxTimeout) {
			return bad(limit.key, "%s is %s, not between 1s and %s", limit.key, limit.d, "720h").WithHint("leave it out for no limit, or give a duration such as 90s, 30m or 2h")
		}
	}
	if a.Retries < 0 || a.Retries > agency.MaxRetries {
		return bad("retries", "retries is %d, not between 0 and %d", a.Retries, agency.MaxRetries)
	}
	if a.DoneWhen != agency.DoneWhenReady && a.DoneWhen != agency.DoneWhenExit {
		return bad("done_when", "done_when is %q", agency.Clip(string(a.DoneWhen))).WithHint("one of: ready, exit")
	}
	return nil
}

// positions returns the index of each id in the plan. The ids must differ so that branches and log
// files of two agents differ on every file system.
func positions(p *agency.Plan) (map[string]int, error) {
	var faults Faults
	ids, folded := make(map[string]int, len(p.Agents)), make(map[string]int, len(p.Agents))
	for i := range p.Agents {
		id := p.Agents[i].ID
		fold := strings.ToLower(id)
		if first, taken := folded[fold]; taken {
			e := agentFault(p, i, "id", "two agents have the id %q", agency.Clip(id))
			if other := p.Agents[first].ID; other != id {
				e = agentFault(p, i, "id", "the ids %q and %q differ in upper and lower case only", agency.Clip(other), agency.Clip(id))
			}
			if !faults.Add(e.WithHint("give each agent an id of its own")) {
				break
			}
			continue
		}
		ids[id], folded[fold] = i, i
	}
	return ids, faults.Err()
}

// validateWaves refuses a wave that contradicts the dependencies.
func validateWaves(p *agency.Plan, g *planGraph) error {
	var faults Faults
	for i := range p.Agents {
		a := &p.Agents[i]
		if a.Wave < 1 || a.Wave > agency.MaxAgents {
			if !faults.Add(agentFault(p, i, "wave", "agent %q is in wave %d, not between 1 and %d", a.ID, a.Wave, agency.MaxAgents)) {
				return faults
			}
			continue
		}
		for _, j := range g.after[i] {
			if before := &p.Agents[j]; before.Wave >= a.Wave {
				told := agentFault(p, i, "wave", "agent %q is in wave %d and comes after %q, which is in wave %d", a.ID, a.Wave, before.ID, before.Wave).
					WithHint("leave out the wave: it follows from after; or say wave: %d", before.Wave+1)
				if !faults.Add(told) {
					return faults
				}
				break
			}
		}
	}
	return faults.Err()
}

// baseProblem returns why a text cannot be a git reference, or "".
func baseProblem(s string) string {
	switch {
	case strings.HasPrefix(s, "-"):
		return "begins with a dash"
	case strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }):
		return "holds a space or a character that is not printed"
	case len(s) > 512:
		return "is too long"
	}
	return ""
}
