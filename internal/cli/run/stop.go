package run

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"agency/internal/api"
	"agency/internal/cli/command"
)

// NewStop returns the command agency stop.
func NewStop(d *command.Deps) *cobra.Command {
	cmd := command.New(cobra.Command{
		Use:     "stop RUN...",
		Short:   "Stop a run's agent; its worktree and branch stay",
		GroupID: "run",
		Long: `Ends the agent of a run, with every process that it started, and then its
tmux session: a user attached to it is back in their own shell. The worktree, the branch and the
logs stay, and agency resume continues the run.

The agent has the time of [stop] grace to finish cleanly before it is killed. A second agency stop
kills it at once. A run that has ended already is fine.`,
		Example:     "  agency stop fix-login",
		Args:        command.TakesRuns,
		Annotations: map[string]string{command.ManyRuns: "yes"},
	}, func(cmd *cobra.Command, args []string) error {
		return d.Each(cmd, args, func(ref string) error { return stop(cmd.Context(), d, ref) })
	})
	cmd.ValidArgsFunction = d.CompleteLive
	return cmd
}

func stop(ctx context.Context, d *command.Deps, ref string) error {
	cfg, err := d.Places()
	if err != nil {
		return err
	}
	slow := time.AfterFunc(timeout, func() {
		d.Chat("waiting for the agent to end (up to %.0f s before it is killed)", cfg.Stop.Grace.Seconds())
	})
	defer slow.Stop()
	resp, err := command.Call(ctx, d, api.StopRun, api.RunRequest{Run: ref})
	if err != nil {
		return err
	}
	return d.Print(resp, func(w io.Writer) {
		if resp.Stopped {
			_, _ = fmt.Fprintf(w, "%s is %s\n", resp.Run.Ref(), resp.Run.State)
		} else {
			_, _ = fmt.Fprintf(w, "%s had ended already: %s\n", resp.Run.Ref(), resp.Run.State)
		}
		if resp.Run.Unrecorded {
			d.Chat("agency: note: %s", command.NotRecorded)
		}
	})
}

// timeout is how long a stop waits before it tells the user what it waits for.
const timeout = time.Second
