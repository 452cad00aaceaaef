package run

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"agency/internal/api"
	"agency/internal/cli/command"
)

// lineTime is how long the status line of tmux waits for the daemon.
const lineTime = 2 * time.Second

// NewLine returns the command agency line, which prints a run's name and status for the status line
// of its tmux session. It never starts a daemon, and prints that none answers.
func NewLine(d *command.Deps) *cobra.Command {
	return command.New(cobra.Command{
		Use:    "line RUN",
		Short:  "Print the status line of a run's terminal",
		Hidden: true,
		Args:   command.Takes("RUN"),
	}, func(cmd *cobra.Command, args []string) error {
		cfg, _ := d.Config() // places are known even when the rest is wrong
		if cfg == nil {
			return nil
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), lineTime)
		defer cancel()
		resp, err := api.Call(ctx, api.NewClient(cfg.Socket, d.Version, nil), api.ListRuns, api.ListRunsRequest{Run: args[0]})
		switch {
		case err != nil:
			_, _ = fmt.Fprintln(d.Out, "status unknown: the daemon does not answer")
		case len(resp.Runs) == 1:
			r := &resp.Runs[0]
			_, _ = fmt.Fprintln(d.Out, r.Ref(), command.ColumnStatus.Cell(r, d.Now()))
		}
		return nil
	})
}
