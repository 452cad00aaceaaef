package page

import "agency"

// NewRun has what the user typed about a new run. An empty field stands for the configured value.
type NewRun struct {
	Task    string
	Repo    string // a folder in the repository
	Name    string
	Preset  string
	Runner  string // a kind, or the name of a custom one
	Base    string // a branch or commit
	Sandbox string
}

// SandboxLevels returns the values that Sandbox can have.
func SandboxLevels() []string {
	levels := []string{}
	for _, level := range agency.SandboxLevels() {
		levels = append(levels, string(level))
	}
	return levels
}

// Spec returns the specification of the run. runner reads a runner as users write it.
func (n *NewRun) Spec(runner func(name string) (kind agency.RunnerKind, custom string)) agency.Spec {
	spec := agency.Spec{
		Prompt: agency.SpecPrompt{Text: n.Task}, Repo: n.Repo, Name: n.Name, Preset: n.Preset, BaseRef: n.Base, Sandbox: agency.SandboxLevel(n.Sandbox),
	}
	if n.Runner != "" {
		spec.Runner.Kind, spec.Runner.Name = runner(n.Runner)
	}
	return spec
}
