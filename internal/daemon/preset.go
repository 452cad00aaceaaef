package daemon

import (
	"slices"

	"agency"
	"agency/internal/config"
)

// applyPreset fills in what a spec leaves open by the preset that it names. What belongs to one kind of runner, the model and the
// arguments, is left out when the spec chooses another one.
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
		kind, name = namedRunner(cfg, p.Harness)
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
	if spec.Headless == nil && p.Headless {
		spec.Headless = &p.Headless
	}
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
