// Package custom describes programs that report nothing by themselves: scripts, and executables
// that a user configures.
package custom

import (
	"slices"
	"strings"

	"agency"
	"agency/internal/harness/acp"
	"agency/internal/harness/agent"
)

// Shell runs the prompt as a script.
var Shell = agent.Agent{Kind: agency.Shell, Name: "shell", Program: "sh", Command: shell}

// Custom runs an executable that the user configured.
var Custom = agent.Agent{Kind: agency.Custom, Name: "custom", Command: command}

// command fills in the arguments of a custom executable. In its arguments {prompt_file}, {worktree}
// and {run_id} are replaced; no shell reads them.
func command(r agency.CommandRequest) agency.Command {
	known := strings.NewReplacer(
		"{prompt_file}", r.PromptFile,
		"{worktree}", r.Worktree,
		"{run_id}", string(r.RunID),
	)
	args := slices.Concat(r.DefaultArgs, r.Runner.Args)
	for i, arg := range args {
		args[i] = known.Replace(arg)
	}
	if r.Mode == agency.ModeProtocol {
		return acp.Command(r, args, agent.OpeningWithRole(r))
	}
	return agency.Command{Argv: args}
}

// shell runs the prompt as a script, whose arguments are the run's.
func shell(r agency.CommandRequest) agency.Command {
	return agency.Command{Argv: slices.Concat(r.DefaultArgs, []string{r.PromptFile}, r.Runner.Args)}
}
