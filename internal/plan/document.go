package plan

import (
	"maps"
	"slices"
	"time"

	"go.yaml.in/yaml/v4"

	"agency"
)

// noAgents is a way out for a plan without agents.
const noAgents = `agents: [{id: one, prompt: "fix the login test"}]`

// planKeys, settingKeys and agentKeys are the keys of the tables of a plan. Those of an agent are its own and the settings, which
// defaults can hold for all of them.
func planKeys() []string {
	return []string{"name", "base", "max_parallel", "limits", "on_failure", "defaults", "agents"}
}

func settingKeys() []string {
	return []string{"runner", "preset", "model", "args", "tags", "headless", "timeout", "idle_timeout", "retries", "done_when"}
}

func agentKeys() []string {
	return slices.Concat([]string{"id", "name", "prompt", "prompt_path", "base", "after", "wave", "touches"}, settingKeys())
}

// settings are what an agent can have from the defaults.
type settings struct {
	runner, preset, model, doneWhen string
	args, tags                      []string
	headless                        *bool
	timeout, idleTimeout            time.Duration
	retries                         int
}

func (s *settings) read(f fields) {
	f.text("runner", &s.runner)
	f.text("preset", &s.preset)
	f.text("model", &s.model)
	f.texts("args", &s.args)
	f.texts("tags", &s.tags)
	f.boolean("headless", &s.headless)
	f.duration("timeout", &s.timeout)
	f.duration("idle_timeout", &s.idleTimeout)
	f.number("retries", &s.retries)
	f.text("done_when", &s.doneWhen)
}

// of are the defaults for one agent. The model and the arguments belong to a runner: an agent that chooses another one, by its
// name or by a preset, has none of them, nor the runner where it chooses a preset.
func (s settings) of(f fields) settings {
	chooses := func(key, usual string) bool { return f.values[key] != nil && f.values[key].Value != usual }
	preset := chooses("preset", s.preset)
	if preset || chooses("runner", s.runner) {
		s.model, s.args = "", nil
	}
	if preset {
		s.runner = ""
	}
	return s
}

// document reads a plan in YAML. dir is the canonical folder in which its paths begin.
func (l *loader) document(name string, data []byte, dir string) (*agency.Plan, error) {
	found := &problems{name: name}
	root := found.parse(data)
	if root == nil {
		return nil, found.err()
	}
	f := found.fields(root, "the plan", planKeys(), func(key string) string {
		switch {
		case slices.Contains(settingKeys(), key):
			return "say it for all agents under defaults:"
		case slices.Contains(agentKeys(), key):
			return "it belongs to an agent, under agents:"
		}
		return ""
	})
	l.settings = f.places("")
	p, onFailure := &agency.Plan{}, ""
	f.text("name", &p.Name)
	f.text("base", &p.Base)
	f.counted("max_parallel", &p.MaxParallel)
	f.text("on_failure", &onFailure)
	p.OnFailure = agency.OnFailure(onFailure)
	p.Limits = f.limits()
	defaults := settings{}
	if n := f.values["defaults"]; n != nil {
		of := found.fields(n, "defaults", settingKeys(), func(key string) string {
			switch {
			case slices.Contains(planKeys(), key):
				return "it stands at the top, outside of defaults"
			case slices.Contains(agentKeys(), key):
				return "each agent says it itself"
			}
			return ""
		})
		defaults.read(of)
		for key, at := range of.places("") {
			if _, taken := l.settings[key]; !taken {
				l.settings[key] = at
			}
		}
	}
	agents := f.values["agents"]
	switch {
	case agents == nil && len(found.list) == 0:
		found.add(root, noAgents, "the plan has no agents")
	case agents == nil:
	case agents.Kind != yaml.SequenceNode:
		found.add(agents, "agents:\n  - id: one\n    prompt: fix the login test", "agents must be a list, not %s", words(agents))
	case len(agents.Content) == 0:
		found.add(agents, noAgents, "the plan has no agents")
	case len(agents.Content) > agency.MaxAgents:
		found.add(agents, "split it into several plans", "the plan has %d agents, more than %d", len(agents.Content), agency.MaxAgents)
	default:
		for _, n := range agents.Content {
			p.Agents = append(p.Agents, l.agent(found, n, &defaults, dir))
		}
	}
	return p, found.err()
}

func (f fields) limits() map[string]int {
	n := f.values["limits"]
	limits := map[string]int{}
	if n == nil {
		return limits
	}
	if n.Kind != yaml.MappingNode {
		f.add(n, "limits: {claude_code: 2}", "limits must be a table of runners, not %s", words(n))
		return limits
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		var runner string
		if key := n.Content[i]; f.textOf(key, "a runner of limits", &runner) {
			if _, twice := limits[runner]; twice {
				f.add(key, "keep one of the two", "the runner %s has two limits", quoted(runner))
			}
			limits[runner] = 0
			value := 0
			f.numberOf(n.Content[i+1], "the limit of "+quoted(runner), &value)
			limits[runner] = value
		}
	}
	return limits
}

func (l *loader) agent(found *problems, n *yaml.Node, defaults *settings, dir string) agency.PlanAgent {
	before := len(found.list)
	f := found.fields(n, "an agent", agentKeys(), func(key string) string {
		if slices.Contains(planKeys(), key) {
			return "it belongs to the whole plan: write it at the top"
		}
		return ""
	})
	at := f.places(place(found.name, n.Line, n.Column))
	for _, key := range settingKeys() { // what it has from the defaults stands there
		if _, own := at[key]; !own && l.settings[key] != "" {
			at[key] = l.settings[key]
		}
	}
	l.agents = append(l.agents, at)
	s := defaults.of(f)
	s.read(f)
	a := agency.PlanAgent{
		Runner: s.runner, Preset: s.preset, Model: s.model, Args: slices.Clone(s.args), Tags: slices.Clone(s.tags), Headless: s.headless,
		Timeout: s.timeout, IdleTimeout: s.idleTimeout, Retries: s.retries, DoneWhen: agency.DoneWhen(s.doneWhen),
	}
	f.text("id", &a.ID)
	f.text("name", &a.Name)
	f.text("prompt", &a.Prompt)
	f.text("base", &a.Base)
	f.texts("after", &a.After)
	f.counted("wave", &a.Wave)
	f.texts("touches", &a.Touches)
	clean := len(found.list) == before // otherwise what is missing may be there, under a wrong key
	if clean && f.values["id"] == nil {
		found.add(n, "give it one: id: 001", "the agent has no id")
	}
	if clean && f.values["prompt"] == nil && f.values["prompt_path"] == nil {
		found.add(n, `prompt: "fix the login test", or prompt_path: 001-login.md`, "the agent has no prompt")
	}
	l.prompt(f, &a, dir)
	return a
}

// prompt reads the task of an agent, which it can have in two ways.
func (l *loader) prompt(f fields, a *agency.PlanAgent, dir string) {
	file := f.values["prompt_path"]
	switch {
	case file != nil && f.values["prompt"] != nil:
		f.add(file, "keep one of the two", "the agent has a prompt and a prompt_path")
	case file != nil:
		var path string
		if !f.textOf(file, "prompt_path", &path) {
			return
		}
		var err error
		if a.PromptPath, a.Prompt, err = l.prompts.text(dir, path); err != nil {
			e := agency.AsError(err)
			f.add(file, e.Hint, "%s", e.Message)
		}
	case f.values["prompt"] != nil:
		if err := l.prompts.add(a.Prompt); err != nil {
			e := agency.AsError(err)
			f.add(f.values["prompt"], e.Hint, "%s", e.Message)
		}
	}
}

// places are where the keys of a table stand, and the table itself.
func (f fields) places(table string) places {
	at := places{"": table}
	for key := range maps.Keys(f.values) {
		n := f.values[key]
		at[key] = place(f.name, n.Line, n.Column)
	}
	return at
}
