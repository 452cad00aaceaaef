// Package harness is what agency knows about each coding agent: its program, its command line, and
// how it takes a task and continues an earlier conversation. Each has a folder, and a line in the
// registry.
package harness

import (
	"slices"
	"strings"

	"agency"
	"agency/internal/harness/acp"
	"agency/internal/harness/agent"
	"agency/internal/protocol"
)

// Build returns the command line of an attempt. It fails with E_SPEC_INVALID for a model or a
// conversation id that cannot be passed on, and like FindExec when the program is missing.
func Build(r agency.CommandRequest) (agency.Command, error) {
	known := of(r.Runner.Kind)
	if known.Command == nil {
		return agency.Command{}, agency.Errorf(agency.CodeSpecInvalid, "the runner kind %q does not exist", string(r.Runner.Kind))
	}
	if strings.HasPrefix(r.Model, "-") {
		return agency.Command{}, agency.Errorf(agency.CodeSpecInvalid, "the model %q begins with a dash", r.Model).
			WithHint("pass options of the agent as its arguments, not as a model")
	}
	if r.ConversationID != "" && !agent.ConversationRule().MatchString(r.ConversationID) {
		return agency.Command{}, agency.Errorf(agency.CodeSpecInvalid, "%q is not a conversation id", r.ConversationID)
	}
	if r.SystemPrompt != "" && known.OwnPrompt(r) {
		return agency.Command{}, agency.Errorf(agency.CodeSpecInvalid, "the arguments of %s give it a system prompt, and so does the run", r.Runner.Name).
			WithHint("drop one of the two")
	}
	if r.Mode == agency.ModeProtocol && Dialect(r.Runner.Kind, r.Protocol) == nil {
		return agency.Command{}, unspoken(r.Runner)
	}
	path := r.Exec
	if r.Sandbox != agency.SandboxContainer { // there, it is in the image
		var err error
		if path, err = FindExec(r.Runner, r.Exec, r.Worktree, r.Env); err != nil {
			return agency.Command{}, err
		}
	}
	c := known.Command(r)
	c.Argv = slices.Insert(c.Argv, 0, path)
	return c, nil
}

// State returns where a runner with this environment keeps its own state, for work in a worktree.
// That includes the variables that hold its key.
func State(kind agency.RunnerKind, env agency.Environ, worktree string) agency.SandboxState {
	known, state := of(kind), agency.SandboxState{}
	if known.State != nil {
		state = known.State(env, worktree)
	}
	state.Env = slices.Concat(state.Env, known.Login.Variables)
	return state
}

// table returns the name of a runner's table in the configuration, below "runners".
func table(r agency.Runner) string {
	if r.Kind == agency.Custom {
		return "custom." + r.Name
	}
	return string(r.Kind)
}

// unspoken is the error for a run in the mode protocol with a runner whose protocol agency does not speak.
func unspoken(r agency.Runner) error {
	err := agency.Errorf(agency.CodeSpecInvalid, "agency does not speak a protocol of %s, so the mode protocol does not work with it", r.Name)
	if r.Kind == agency.Custom {
		return err.WithHint("where it speaks the Agent Client Protocol: protocol = %q in [runners.%s]; else --mode terminal", agency.ACP, table(r))
	}
	return err.WithHint("--mode terminal, or --runner %s", strings.Join(speaking(), "|"))
}

// Dialect returns the protocol of a kind of runner; nil when agency does not speak it. A custom runner
// speaks what is configured for it.
func Dialect(kind agency.RunnerKind, configured string) *protocol.Dialect {
	if kind == agency.Custom && configured == agency.ACP {
		return &acp.Dialect
	}
	return of(kind).Dialect
}

// speaking returns the runners whose protocol agency speaks.
func speaking() []string {
	var names []string
	for _, a := range registry {
		if a.Dialect != nil {
			names = append(names, string(a.Kind))
		}
	}
	return names
}
