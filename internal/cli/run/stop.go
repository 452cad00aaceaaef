package run

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
	"agency/internal/duration"
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

The agent has the time of [stop] grace to finish cleanly; then agency kills it. A second agency stop
kills it at once. A run that has already ended is no error.`,
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
		return d.Each(cmd, args, func(ref string) error {
			return stop(d, func() (api.StopRunResponse, error) {
				return command.CallAnyway(cmd.Context(), d, api.StopRun, api.RunRequest{Run: ref})
			})
		})
	})
	cmd.Flags().BoolVar(&all, "all", false, "stop every live run of this repository")
	cmd.ValidArgsFunction = complete.Live(d)
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
	// Each first checks that it may act on several runs; until then nothing is stopped.
	asked := sync.OnceValue(func() map[string]chan stopped { return askToStop(cmd.Context(), client, live) })
	return d.Each(cmd, live, func(ref string) error {
		return stop(d, func() (api.StopRunResponse, error) {
			answer := <-asked()[ref]
			return answer.resp, answer.err
		})
	})
}

// stopped is the answer to one request to stop a run.
type stopped struct {
	resp api.StopRunResponse
	err  error
}

// atOnce is how many runs are stopped at the same time: an agent may use all of its grace.
const atOnce = 32

// askToStop asks the daemon to stop runs, in their order, and returns for each a channel of the
// answer.
func askToStop(ctx context.Context, client *api.Client, runs []string) map[string]chan stopped {
	answers := map[string]chan stopped{}
	next := make(chan string, len(runs))
	for _, ref := range runs {
		answers[ref] = make(chan stopped, 1)
		next <- ref
	}
	close(next)
	for range min(atOnce, len(runs)) {
		go func() {
			for ref := range next {
				resp, err := api.Call(ctx, client, api.StopRun, api.RunRequest{Run: ref})
				answers[ref] <- stopped{resp, err}
			}
		}()
	}
	return answers
}

// stop prints the answer to a request to stop a run and, if the answer takes long, what it waits
// for.
func stop(d *command.Deps, ask func() (api.StopRunResponse, error)) error {
	cfg, err := d.Places()
	if err != nil {
		return err
	}
	slow := time.AfterFunc(timeout, func() {
		d.Chat("waiting for the agent to end (up to %s before it is killed)", duration.Text(cfg.Stop.Grace))
	})
	defer slow.Stop()
	resp, err := ask()
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

// timeout is how long a stop waits before it prints what it waits for.
const timeout = time.Second
