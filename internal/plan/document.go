package plan

import (
	"slices"
	"strconv"
	"time"

	"agency"
	"agency/internal/document"
)

// noAgents is the hint for a plan without agents.
const noAgents = `agents: [{id: one, prompt: "fix the login test"}]`

// planKeys, settingKeys and agentKeys return the keys of the tables of a plan. The keys of an agent
// are its own and the settings, which the defaults can set for all agents.
func planKeys() []string {
	return []string{"name", "base", "max_parallel", "limits", "on_failure", "defaults", "agents"}
}

func settingKeys() []string {
	return []string{"runner", "preset", "model", "args", "tags", "headless", "mode", "sandbox", "network", "resources", "timeout", "idle_timeout", "retries", "done_when", "land"}
}

func agentKeys() []string {
	return slices.Concat([]string{"id", "name", "prompt", "prompt_path", "base", "after", "wave", "touches"}, settingKeys())
}

// settings are the values that an agent can take from the defaults.
type settings struct {
	runner, preset, model, doneWhen, land string
	mode, sandbox, network                string
	resources                             agency.Resources
	args, tags                            []string
	headless                              *bool
	timeout, idleTimeout                  time.Duration
	retries                               int
}

func (s *settings) read(f fields) {
	read(f, "runner", &s.runner, text)
	read(f, "preset", &s.preset, text)
	read(f, "model", &s.model, text)
	read(f, "args", &s.args, texts)
	read(f, "tags", &s.tags, texts)
	read(f, "headless", &s.headless, boolean)
	read(f, "mode", &s.mode, text)
	read(f, "sandbox", &s.sandbox, text)
	read(f, "network", &s.network, text)
	read(f, "resources", &s.resources, resources)
	read(f, "timeout", &s.timeout, limit)
	read(f, "idle_timeout", &s.idleTimeout, limit)
	read(f, "retries", &s.retries, number)
	read(f, "done_when", &s.doneWhen, text)
	read(f, "land", &s.land, text)
}

// of returns the defaults for one agent. The model and the arguments belong to a runner: an agent
// that chooses another runner, by its name or by a preset, gets neither. An agent that chooses a
// preset gets no runner either.
func (s settings) of(f fields) settings {
	chooses := func(key, usual string) bool { return f.values[key] != nil && f.values[key].Text != usual }
	preset := chooses("preset", s.preset)
	if preset || chooses("runner", s.runner) {
		s.model, s.args = "", nil
	}
	if preset {
		s.runner = ""
	}
	return s
}

// document reads a plan in YAML. dir is the canonical folder for relative paths.
func (l *loader) document(name string, data []byte, dir string) (*agency.Plan, error) {
	found := &document.Problems{Name: name}
	root, faults := document.YAML(data, form)
	if found.AddFaults(faults); root == nil {
		if len(faults) == 0 {
			found.Add(document.Position{}, "it needs "+noAgents, "the plan is empty")
		}
		return nil, problemsErr(found)
	}
	f := fieldsOf(found, root, "the plan", planKeys(), func(key string) string {
		switch {
		case slices.Contains(settingKeys(), key):
			return "say it for all agents under defaults:"
		case slices.Contains(agentKeys(), key):
			return "it belongs to an agent, under agents:"
		}
		return ""
	})
	l.settings = f.places(document.Position{})
	p, onFailure := &agency.Plan{}, ""
	read(f, "name", &p.Name, text)
	read(f, "base", &p.Base, text)
	read(f, "max_parallel", &p.MaxParallel, counted)
	read(f, "on_failure", &onFailure, text)
	p.OnFailure = agency.OnFailure(onFailure)
	p.Limits = f.limits()
	defaults := settings{}
	if n := f.values["defaults"]; n != nil {
		of := fieldsOf(found, n, "defaults", settingKeys(), func(key string) string {
			switch {
			case slices.Contains(planKeys(), key):
				return "it belongs at the top, outside of defaults"
			case slices.Contains(agentKeys(), key):
				return "write it with each agent"
			}
			return ""
		})
		defaults.read(of)
		for key, at := range of.places(document.Position{}) {
			if _, taken := l.settings[key]; !taken {
				l.settings[key] = at
			}
		}
	}
	p.Agents = l.readAgents(found, root, f.values["agents"], &defaults, dir)
	return p, problemsErr(found)
}

// readAgents reads the agents of a plan, which must have at least one.
func (l *loader) readAgents(found *document.Problems, root, agents *document.Value, defaults *settings, dir string) (list []agency.PlanAgent) {
	switch {
	case agents == nil && found.Len() == 0:
		found.Add(root.At, noAgents, "the plan has no agents")
	case agents == nil:
	case agents.Kind != document.List && agents.Kind != document.Table:
		found.Add(agents.At, noAgents, "agents must be a list, or a table by their ids, not %s", agents.Words())
	case len(agents.Items)+len(agents.Fields) == 0:
		found.Add(agents.At, noAgents, "the plan has no agents")
	case len(agents.Items)+len(agents.Fields) > agency.MaxAgents:
		found.Add(agents.At, "split it into several plans", "the plan has %d agents, more than %d", len(agents.Items)+len(agents.Fields), agency.MaxAgents)
	default:
		for _, v := range agents.Items {
			list = append(list, l.agent(found, v, nil, defaults, dir))
		}
		for _, field := range agents.Fields {
			list = append(list, l.agent(found, field.Value, field, defaults, dir))
		}
	}
	return list
}

// problemsErr returns the error of the first problem; its message has lines for some of the others.
func problemsErr(found *document.Problems) error {
	err := found.Err(agency.CodePlanInvalid)
	if err == nil {
		return nil
	}
	e := agency.AsError(err)
	lines, _ := e.Details["problems"].([]string)
	e.Message = among(e.Message, lines, strconv.Itoa(found.Len()-1))
	return e
}

func (f fields) limits() map[string]int {
	limits, v := map[string]int{}, f.values["limits"]
	if v == nil {
		return limits
	}
	if v.Kind != document.Table {
		f.Add(v.At, "limits: {claude_code: 2}", "limits must be a table of runners, not %s", v.Words())
		return limits
	}
	var runners []string // any name: the caller knows the valid ones
	for _, field := range v.Fields {
		runners = append(runners, field.Key)
	}
	for _, field := range f.Fields(v, runners, document.Quoted, nil) {
		n, err := number(field.Value)
		if err != nil {
			f.Refuse(field.Value, "the limit of "+document.Quoted(field.Key), err)
		}
		if err := filled(field.Key); err != nil {
			f.Add(field.At, "name a runner", "a runner of limits %v", err)
		}
		limits[field.Key] = n
	}
	return limits
}

// agent reads one agent. named is its field in a table of agents, whose key is the id; nil in a
// list.
func (l *loader) agent(found *document.Problems, v *document.Value, named *document.Field, defaults *settings, dir string) agency.PlanAgent {
	before := found.Len()
	f := fieldsOf(found, v, "an agent", agentKeys(), func(key string) string {
		switch {
		case key == "needs" || key == "depends_on":
			return `say "after"`
		case slices.Contains(planKeys(), key):
			return "it belongs to the whole plan: write it at the top"
		}
		return ""
	})
	at := f.places(v.At)
	for _, key := range settingKeys() { // the values from the defaults have their places there
		if _, own := at[key]; !own && l.settings[key].text != "" {
			at[key] = l.settings[key]
		}
	}
	l.agents = append(l.agents, at)
	s := defaults.of(f)
	s.read(f)
	a := agency.PlanAgent{
		Runner: s.runner, Preset: s.preset, Model: s.model, Args: slices.Clone(s.args), Tags: slices.Clone(s.tags), Headless: s.headless, Mode: agency.Mode(s.mode),
		Sandbox: agency.SandboxLevel(s.sandbox), Network: agency.Network(s.network), Resources: s.resources,
		Timeout: s.timeout, IdleTimeout: s.idleTimeout, Retries: s.retries, DoneWhen: agency.DoneWhen(s.doneWhen), Land: agency.LandBy(s.land),
	}
	switch own := f.values["id"]; {
	case named == nil:
		read(f, "id", &a.ID, text)
	case own != nil:
		found.Add(own.At, "leave out one of the two: agents is a table by their ids, or a list", "the agent %s has another id inside", document.Quoted(named.Key))
	default:
		a.ID, at["id"] = named.Key, place{found.Place(named.At), named.At.Line}
	}
	read(f, "name", &a.Name, text)
	read(f, "prompt", &a.Prompt, text)
	read(f, "base", &a.Base, text)
	read(f, "after", &a.After, oneOrMore)
	read(f, "wave", &a.Wave, counted)
	read(f, "touches", &a.Touches, texts)
	clean := found.Len() == before // otherwise the missing value may be there, under a wrong key
	if clean && named == nil && f.values["id"] == nil {
		found.Add(v.At, "give it one: id: 001", "the agent has no id")
	}
	if clean && f.values["prompt"] == nil && f.values["prompt_path"] == nil {
		found.Add(v.At, `prompt: "fix the login test", or prompt_path: 001-login.md`, "the agent has no prompt")
	}
	l.prompt(f, &a, dir)
	return a
}

// prompt reads the task of an agent, which has two possible forms.
func (l *loader) prompt(f fields, a *agency.PlanAgent, dir string) {
	file := f.values["prompt_path"]
	switch {
	case file != nil && f.values["prompt"] != nil:
		f.Add(file.At, "keep one of the two", "the agent has a prompt and a prompt_path")
	case file != nil:
		var path string
		if !read(f, "prompt_path", &path, text) {
			return
		}
		var err error
		if a.PromptPath, a.Prompt, err = l.prompts.text(dir, path); err != nil {
			e := agency.AsError(err)
			f.Add(file.At, e.Hint, "%s", e.Message)
		}
	case f.values["prompt"] != nil:
		if err := l.prompts.add(a.Prompt); err != nil {
			e := agency.AsError(err)
			f.Add(f.values["prompt"].At, e.Hint, "%s", e.Message)
		}
	}
}

// places returns the places of a table's keys, and of the table itself; a zero table has none.
func (f fields) places(table document.Position) places {
	at := places{}
	if table.Line > 0 {
		at[""] = place{f.Place(table), table.Line}
	}
	for key, v := range f.values {
		at[key] = place{f.Place(v.At), v.At.Line}
	}
	return at
}
