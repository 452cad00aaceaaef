package run

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
)

// NewStop returns the command agency stop.
func NewStop(d *command.Deps) *cobra.Command {
	all := false
	cmd := command.New(cobra.Command{
		Use:     "stop RUN...",
		Aliases: []string{"kill"},
		Short:   "Stop a run's agent; its worktree and branch stay",
		GroupID: "run",
		Long: `Ends the agent of a run, with every process that it started, and then its
tmux session: a user attached to it is back in their own shell. The worktree, the branch and the
logs stay, and agency resume continues the run.

The agent has the time of [stop] grace to finish cleanly before it is killed. A second agency stop
kills it at once. A run that has ended already is fine.`,
		Example: `  agency stop fix-login
  agency stop --all`,
		Args: func(cmd *cobra.Command, args []string) error {
			if all && len(args) > 0 {
				return agency.Errorf(agency.CodeUsage, "--all is given, and %q too", args[0]).WithHint("give one of the two")
			} else if all {
				return nil
			}
			return command.TakesRuns(cmd, args)
		},
		Annotations: map[string]string{command.ManyRuns: "yes"},
	}, func(cmd *cobra.Command, args []string) error {
		if all {
			return stopAll(cmd, d)
		}
		return d.Each(cmd, args, func(ref string) error { return stop(cmd.Context(), d, ref) })
	})
	cmd.Flags().BoolVar(&all, "all", false, "stop every live run of this repository")
	cmd.ValidArgsFunction = d.CompleteLive
	return cmd
}

// stopAll stops the live runs of the repository around the caller.
func stopAll(cmd *cobra.Command, d *command.Deps) error {
	client, err := d.Client()
	if err != nil {
		return err
	}
	resp, err := api.Call(cmd.Context(), client, api.ListRuns, api.ListRunsRequest{Dir: d.Dir, Status: []string{}})
	if err != nil {
		return err
	}
	live := []string{}
	for i := range resp.Runs {
		if r := &resp.Runs[i]; !r.State.Final() {
			live = append(live, string(r.ID))
		}
	}
	if len(live) == 0 {
		return d.Print(map[string]any{}, func(io.Writer) { d.Chat("no run is live here") })
	}
	return d.Each(cmd, live, func(ref string) error { return stop(cmd.Context(), d, ref) })
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
	resp, err := command.CallAnyway(ctx, d, api.StopRun, api.RunRequest{Run: ref})
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
