package harness

import "slices"

// shell runs the prompt as a script, whose arguments are the run's.
func shell(r Request) Command {
	return Command{Argv: slices.Concat(r.DefaultArgs, []string{r.PromptFile}, r.Runner.Args)}
}
