// Package resolve combines the settings of the client, a preset, the repository and the
// configuration, in this order, into one request for a run.
package resolve

import (
	"cmp"
	"maps"
	"slices"

	"agency"
	"agency/internal/config"
	"agency/internal/handle"
	"agency/internal/plain"
)

// Run fills in what a spec leaves open: from its preset, then from the repository, then from the
// user's configuration.
func Run(cfg *config.Config, spec *agency.Spec, p *agency.Project) (agency.RunSettings, error) {
	if err := applyPreset(cfg, spec); err != nil {
		return agency.RunSettings{}, err
	}
	if spec.Runner.Kind == "" {
		name := p.Runner
		if name == "" {
			name = cfg.Defaults.Runner
		}
		spec.Runner.Kind, spec.Runner.Name = Named(cfg, name)
	}
	if err := applyMode(cfg, spec); err != nil {
		return agency.RunSettings{}, err
	}
	if spec.BaseRef == "" {
		spec.BaseRef = p.Base
	}
	if spec.BaseRef == "" {
		spec.BaseRef = cfg.Defaults.Base
	}
	// Where only the repository narrows the network, the agent reaches the hosts of the repository. In all
	// other cases these would add to the hosts of the user.
	if spec.Network == "" && cfg.Sandbox.Network == agency.NetworkFull && p.Sandbox.Network == agency.NetworkAllow {
		spec.Hosts = append(spec.Hosts, p.Hosts...)
	}
	// The repository may ask for more than the configuration, and never for less.
	sandbox := agency.Sandbox{Level: spec.Sandbox, Network: spec.Network}.Or(cfg.Sandbox.Stricter(p.Sandbox))
	if sandbox.Level == agency.SandboxWorktree && spec.Network == "" {
		sandbox.Network = agency.NetworkFull // what is configured for sandboxes
	}
	spec.Sandbox, spec.Network = sandbox.Level, sandbox.Network
	configured := cfg.Resources.Tighter(p.Resources)
	if spec.Sandbox == agency.SandboxWorktree || spec.Sandbox == agency.SandboxLandlock {
		configured.Tmp = 0 // what is configured for sandboxes
	}
	spec.Resources = spec.Resources.Or(configured).Final()
	chosen, err := Settings(cfg, agency.Runner{Kind: spec.Runner.Kind, Name: spec.Runner.Name})
	if err == nil && p.HandleFormat != "" {
		chosen.Handle, err = handle.ParseFormat(p.HandleFormat)
	}
	return chosen, err
}

// Named returns the kind and the name of a runner as users write it: a kind, or the name of a
// custom runner that may not exist.
func Named(cfg *config.Config, name string) (agency.RunnerKind, string) {
	if _, isKind := cfg.Runners[agency.RunnerKind(name)]; isKind {
		return agency.RunnerKind(name), ""
	}
	return agency.Custom, name
}

// Settings returns the settings of a configuration for runs of a runner.
func Settings(cfg *config.Config, r agency.Runner) (agency.RunSettings, error) {
	found, ok := cfg.Runners[r.Kind]
	if r.Kind == agency.Custom {
		found, ok = cfg.Custom[r.Name]
	}
	if !ok {
		name := cmp.Or(r.Name, string(r.Kind))
		unknown := agency.Errorf(agency.CodeRunnerNotConfigured, "there is no runner named %q", name)
		known := slices.Sorted(maps.Keys(cfg.Custom))
		for _, kind := range config.RunnerKinds() {
			known = append(known, string(kind))
		}
		if near := plain.Nearest(name, known); near != "" {
			return agency.RunSettings{}, unknown.WithHint("did you mean %q", near)
		}
		return agency.RunSettings{}, unknown.
			WithHint("one of %s, or add [runners.custom.%s] with exec = \"...\" to %s", config.RunnerNames(), name, cfg.Path)
	}
	path := ""
	if cfg.Exists {
		path = cfg.Path
	}
	return agency.RunSettings{
		Config: path,
		Exec:   found.Exec, DefaultArgs: found.DefaultArgs, Protocol: found.Protocol,
		Sandbox: cfg.Sandbox.SandboxSettings, Image: cfg.Sandbox.Image,
		Handle: cfg.IDs.Format, EnvDeny: cfg.Env.Deny, Grace: cfg.Stop.Grace, LogBytes: cfg.Logs.MaxBytes,
	}, nil
}

// Agent returns the spec and settings for the run of an agent, without its names, its branch and,
// when its base is the results of others, the start commit.
func Agent(cfg *config.Config, project *agency.Project, a *agency.PlanAgent) (agency.Spec, agency.RunSettings, error) {
	spec := AgentSpec(a)
	chosen, err := Run(cfg, &spec, project)
	if err == nil {
		err = spec.Validate()
	}
	return spec, chosen, err
}

// Runner returns the runner of a spec that is filled in.
func Runner(spec *agency.Spec) agency.Runner {
	return agency.Runner{Kind: spec.Runner.Kind, Name: cmp.Or(spec.Runner.Name, string(spec.Runner.Kind)), Args: spec.Runner.Args}
}

// RunnerOf returns the runner that users write as name.
func RunnerOf(cfg *config.Config, name string) agency.Runner {
	kind, custom := Named(cfg, name)
	return agency.Runner{Kind: kind, Name: cmp.Or(custom, string(kind))}
}

// KnownRunners returns the names of all runners of a configuration, as users write them.
func KnownRunners(cfg *config.Config) []string {
	names := slices.Sorted(maps.Keys(cfg.Custom))
	for kind := range cfg.Runners {
		names = append(names, string(kind))
	}
	return names
}

// AgentSpec returns the plan's part of the spec for an agent's run.
func AgentSpec(a *agency.PlanAgent) agency.Spec {
	spec := agency.Spec{
		Preset: a.Preset, Sandbox: a.Sandbox, Network: a.Network, Resources: a.Resources, BaseRef: a.Base, Tags: slices.Clone(a.Tags), Headless: a.Headless, Mode: a.Mode,
		Runner: agency.SpecRunner{Model: a.Model, Args: slices.Clone(a.Args)},
		Prompt: agency.SpecPrompt{Text: a.Prompt},
	}
	if a.Base == agency.BaseDeps {
		spec.BaseRef = ""
	}
	if a.Runner != "" {
		spec.Runner.Kind, spec.Runner.Name = config.ParseRunner(a.Runner)
	}
	return spec
}

// Later returns the settings of a later attempt of a run.
func Later(cfg *config.Config, r *agency.Run) (agency.RunSettings, error) {
	chosen, err := Settings(cfg, r.Runner)
	chosen.Env = cfg.Presets[r.Preset].Env // the current values: the record stores none
	return chosen, err
}

// applyPreset fills in what a spec leaves open from the preset that it names. The model and the
// arguments belong to one kind of runner. They are left out when the spec chooses another one.
func applyPreset(cfg *config.Config, spec *agency.Spec) error {
	if spec.Preset == "" {
		return nil
	}
	p, err := cfg.Preset(spec.Preset)
	if err != nil {
		return err
	}
	kind, name := agency.RunnerKind(""), ""
	if p.Harness != "" {
		kind, name = Named(cfg, p.Harness)
	}
	if spec.Runner.Kind == "" {
		spec.Runner.Kind, spec.Runner.Name = kind, name
	}
	if kind == "" || spec.Runner.Kind == kind && spec.Runner.Name == name {
		if spec.Runner.Model == "" {
			spec.Runner.Model = p.Model
		}
		spec.Runner.Args = slices.Concat(p.Args, spec.Runner.Args)
	}
	spec.Runner.SkipPermissions = spec.Runner.SkipPermissions || p.SkipPermissions
	spec.Env = slices.Concat(p.Env, spec.Env)
	if len(spec.Tags) == 0 {
		spec.Tags = slices.Clone(p.Tags)
	}
	if spec.Mode, err = agency.ChooseMode(spec.Mode, spec.Headless); err != nil {
		return err
	}
	if spec.Mode == "" && (p.Mode != "" || p.Headless) {
		spec.Mode, err = layerMode(p.Mode, p.Headless)
	}
	if err != nil {
		return err
	}
	sandbox := agency.Sandbox{Level: spec.Sandbox, Network: spec.Network}.Or(p.Sandbox)
	spec.Sandbox, spec.Network = sandbox.Level, sandbox.Network
	spec.Resources = spec.Resources.Or(p.Resources)
	if spec.Limits.StallAfterMS == 0 {
		spec.Limits.StallAfterMS = p.StallThreshold.Milliseconds()
	}
	if spec.Limits.StuckIntervals == 0 {
		spec.Limits.StuckIntervals = p.StuckIntervals
	}
	if spec.SystemPrompt == "" {
		spec.SystemPrompt, err = p.SystemPrompt()
	}
	return err
}

// applyMode decides how agency speaks with the agent, and sets Headless to match.
func applyMode(cfg *config.Config, spec *agency.Spec) (err error) {
	if spec.Mode, err = agency.ChooseMode(spec.Mode, spec.Headless); err != nil {
		return err
	}
	if spec.Mode == "" && spec.Runner.Kind == agency.Custom && cfg.Custom[spec.Runner.Name].Protocol != "" {
		spec.Mode = agency.ModeProtocol // nothing else works with such a program
	}
	if spec.Mode == "" {
		if spec.Mode, err = layerMode(cfg.Defaults.Mode, cfg.Defaults.Headless); err != nil {
			return err
		}
	}
	headless := spec.Mode == agency.ModeHeadless
	spec.Headless = &headless
	return nil
}

// layerMode returns the mode of a preset or of the configuration, whose headless is false when it is
// not set.
func layerMode(mode agency.Mode, headless bool) (agency.Mode, error) {
	if !headless {
		return cmp.Or(mode, agency.ModeTerminal), nil
	}
	return agency.ChooseMode(mode, &headless)
}
