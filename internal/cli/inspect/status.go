package inspect

import (
	"github.com/spf13/cobra"

	"agency/internal/cli/command"
	"agency/internal/cli/complete"
)

// NewStatus returns the command agency status, which help does not list: agency ls, or with a run
// agency show.
func NewStatus(d *command.Deps) *cobra.Command {
	ls, show := NewList(d), NewShow(d)
	cmd := command.New(cobra.Command{
		Use:               "status [RUN]",
		Short:             "List runs, or show one: agency ls, agency show",
		Example:           "  agency status",
		Args:              command.TakesUpTo("RUN"),
		Hidden:            true, // the help names one command for each purpose
		GroupID:           "inspect",
		ValidArgsFunction: complete.Runs(d),
	}, func(cmd *cobra.Command, args []string) error {
		next := ls
		if len(args) > 0 {
			next = show
		}
		next.SetContext(cmd.Context())
		return next.RunE(next, args)
	})
	return cmd
}
