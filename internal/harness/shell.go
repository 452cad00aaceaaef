package harness

import (
	"slices"

	"agency"
)

// shell runs the prompt as a script, whose arguments are the run's.
func shell(r agency.CommandRequest) agency.Command {
	return agency.Command{Argv: slices.Concat(r.DefaultArgs, []string{r.PromptFile}, r.Runner.Args)}
}
