package config

import (
	"slices"
	"strings"

	"agency"
	"agency/internal/harness"
)

// RunnerKinds returns the kinds of runners that need only a name, the default first: all but custom
// ones.
func RunnerKinds() []agency.RunnerKind { return harness.Kinds() }

// programs returns the kinds of coding agents by the names of their programs.
func programs() map[string]agency.RunnerKind {
	kinds := map[string]agency.RunnerKind{}
	for _, a := range harness.Agents() {
		kinds[a.Program] = a.Kind
	}
	return kinds
}

// RunnerNames returns these kinds with commas between them, for the user.
func RunnerNames() string {
	names := make([]string, 0, len(RunnerKinds()))
	for _, kind := range RunnerKinds() {
		names = append(names, string(kind))
	}
	return strings.Join(names, ", ")
}

// ParseRunner reads a runner as users write it: a kind, or else the name of a custom runner, which
// may be in the configuration.
func ParseRunner(name string) (kind agency.RunnerKind, custom string) {
	if slices.Contains(RunnerKinds(), agency.RunnerKind(name)) {
		return agency.RunnerKind(name), ""
	}
	return agency.Custom, name
}

// defaultRunners returns all kinds with their default programs.
func defaultRunners() map[agency.RunnerKind]Runner {
	runners := map[agency.RunnerKind]Runner{}
	for _, kind := range RunnerKinds() {
		runners[kind] = Runner{Exec: harness.Program(kind), DefaultArgs: []string{}}
	}
	return runners
}
