package plan

import (
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"agency"
	"agency/internal/duration"
	"agency/internal/plain"
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
	var faults Faults
	if problem := plain.LineProblem(p.Name); problem != "" {
		faults.Add(settingFault("name", "the name of the plan %s", problem).WithHint("a name is one line of at most %d characters", plain.LongestLine))
	}
	if problem := baseProblem(p.Base); problem != "" {
		faults.Add(settingFault("base", "base %s", problem).WithHint("a branch, tag or commit, or %s for the results of the agents before", agency.BaseDeps))
	}
	if p.MaxParallel < 1 || p.MaxParallel > agency.MaxParallelAgents {
		faults.Add(settingFault("max_parallel", "max_parallel is %d, not between 1 and %d", p.MaxParallel, agency.MaxParallelAgents).
			WithHint("leave it out for %d", agency.DefaultParallel))
	}
	for _, runner := range slices.Sorted(maps.Keys(p.Limits)) {
		if n := p.Limits[runner]; n < 1 || n > agency.MaxParallelAgents {
			faults.Add(settingFault("limits", "the limit of %q is %d, not between 1 and %d", plain.Clip(runner), n, agency.MaxParallelAgents).
				WithHint("leave it out for no limit but max_parallel"))
		}
	}
	policies := []agency.OnFailure{agency.StopOnFailure, agency.ContinueOnFailure, agency.AskOnFailure}
	if !slices.Contains(policies, p.OnFailure) {
		faults.Add(settingFault("on_failure", "on_failure is %q", plain.Clip(string(p.OnFailure))).WithHint("one of: stop, continue, ask"))
	}
	if len(p.Agents) > agency.MaxAgents {
		faults.Add(settingFault("agents", "the plan has %d agents, more than %d", len(p.Agents), agency.MaxAgents).WithHint("split it into several plans"))
	}
	return faults.Err()
}

func validateAgent(p *agency.Plan, i int) error {
	var faults Faults
	a := &p.Agents[i]
	bad := func(key, format string, args ...any) *agency.Error {
		return agentFault(p, i, key, "agent %q: "+format, append([]any{plain.Clip(a.ID)}, args...)...)
	}
	wrap := func(key string, err error) error {
		e := agency.AsError(err)
		return bad(key, "%s", e.Message).WithHint("%s", e.Hint)
	}
	if err := agency.CheckAgentID(a.ID); err != nil {
		e := agency.AsError(err)
		return agentFault(p, i, "id", "%s", e.Message).WithHint("%s", e.Hint)
	}
	if problem := plain.LineProblem(a.Name); problem != "" {
		faults.Add(bad("name", "its name %s", problem).WithHint("a name is one line of at most %d characters", plain.LongestLine))
	}
	if err := agency.CheckPrompt(a.Prompt); err != nil {
		key := "prompt"
		if a.PromptPath != "" {
			key = "prompt_path"
		}
		faults.Add(wrap(key, err))
	}
	for _, tag := range a.Tags {
		if err := agency.CheckWord("tag", tag); err != nil {
			faults.Add(wrap("tags", err))
		}
	}
	if strings.HasPrefix(a.Model, "-") {
		faults.Add(bad("model", "the model %q begins with a dash", plain.Clip(a.Model)).WithHint("options of the runner go into args"))
	}
	for _, arg := range a.Args {
		if strings.ContainsRune(arg, 0) {
			faults.Add(bad("args", "an argument holds a NUL byte"))
			break
		}
	}
	if problem := baseProblem(a.Base); problem != "" && a.Base != p.Base {
		faults.Add(bad("base", "base %s", problem).WithHint("a branch, tag or commit, or %s for the results of the agents before", agency.BaseDeps))
	}
	for _, limit := range []struct {
		key string
		d   time.Duration
	}{{"timeout", a.Timeout}, {"idle_timeout", a.IdleTimeout}} {
		if limit.d != 0 && (limit.d < time.Second || limit.d > agency.MaxTimeout) {
			faults.Add(bad(limit.key, "%s is %s, not between 1s and 720h", limit.key, duration.Exact(limit.d)).WithHint("leave it out for no limit, or give a duration such as 90s, 30m or 2h"))
		}
	}
	if a.Retries < 0 || a.Retries > agency.MaxRetries {
		faults.Add(bad("retries", "retries is %d, not between 0 and %d", a.Retries, agency.MaxRetries))
	}
	if a.DoneWhen != agency.DoneWhenReady && a.DoneWhen != agency.DoneWhenExit {
		faults.Add(bad("done_when", "done_when is %q", plain.Clip(string(a.DoneWhen))).WithHint("one of: ready, exit"))
	}
	if a.Land != "" && a.Land != agency.LandByQueue && a.Land != agency.LandByMerge {
		faults.Add(bad("land", "land is %q", plain.Clip(string(a.Land))).WithHint("one of: queue, merge, none"))
	}
	return faults.Err()
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
			e := agentFault(p, i, "id", "two agents have the id %q", plain.Clip(id))
			if other := p.Agents[first].ID; other != id {
				e = agentFault(p, i, "id", "the ids %q and %q differ in upper and lower case only", plain.Clip(other), plain.Clip(id))
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
				contradiction := agentFault(p, i, "wave", "agent %q is in wave %d and comes after %q, which is in wave %d", a.ID, a.Wave, before.ID, before.Wave).
					WithHint("leave out the wave: it follows from after; or say wave: %d", before.Wave+1)
				if !faults.Add(contradiction) {
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
