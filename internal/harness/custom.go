package harness

import (
	"slices"
	"strings"

	"agency"
)

// custom is an executable of the user's own. In its arguments {prompt_file}, {worktree} and {run_id} are replaced; no
// shell reads them.
func custom(r agency.CommandRequest) agency.Command {
	known := strings.NewReplacer(
		"{prompt_file}", r.PromptFile,
		"{worktree}", r.Worktree,
		"{run_id}", string(r.RunID),
	)
	args := slices.Concat(r.DefaultArgs, r.Runner.Args)
	for i, arg := range args {
		args[i] = known.Replace(arg)
	}
	return agency.Command{Argv: args}
}
