package harness

import (
	"slices"

	"agency"
	"agency/internal/harness/agent"
	"agency/internal/harness/claude"
	"agency/internal/harness/codex"
	"agency/internal/harness/copilot"
	"agency/internal/harness/custom"
	"agency/internal/harness/gemini"
	"agency/internal/harness/opencode"
)

// registry holds all kinds of runners, in the order of help and documentation. The first is the
// default of new runs. An agent is added by its folder and its line here; docs/add-an-agent.md
// explains how.
var registry = []agent.Agent{
	claude.Agent,
	codex.Agent,
	gemini.Agent,
	opencode.Agent,
	copilot.Agent,
	custom.Shell,
	custom.Custom,
}

// of returns the description of a kind of runner; an empty one for an unknown kind.
func of(kind agency.RunnerKind) agent.Agent {
	if i := slices.IndexFunc(registry, func(a agent.Agent) bool { return a.Kind == kind }); i >= 0 {
		return registry[i]
	}
	return agent.Agent{}
}

// Kinds returns the kinds of runners that need only a name, the default first: all but custom ones.
func Kinds() []agency.RunnerKind {
	kinds := make([]agency.RunnerKind, 0, len(registry))
	for _, a := range registry {
		if a.Kind != agency.Custom {
			kinds = append(kinds, a.Kind)
		}
	}
	return kinds
}

// Agents returns the coding agents that agency knows, without scripts and custom programs.
func Agents() []agent.Agent {
	return slices.DeleteFunc(slices.Clone(registry), func(a agent.Agent) bool { return a.Package == "" })
}

// Program returns the usual name of the program of a kind of runner; empty for a custom one.
func Program(kind agency.RunnerKind) string { return of(kind).Program }

// SkipsPermissions reports whether an agent asks for no permission with these arguments. A script
// never asks.
func SkipsPermissions(kind agency.RunnerKind, args []string) bool {
	return kind == agency.Shell || of(kind).SkipsPermissions(args)
}
