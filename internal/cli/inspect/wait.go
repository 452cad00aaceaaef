package inspect

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
	"agency/internal/duration"
)

// waitOptions are the flags and dependencies of agency wait.
type waitOptions struct {
	*command.Deps

	labels  []string
	timeout time.Duration
}

// NewWait returns the command agency wait.
func NewWait(d *command.Deps) *cobra.Command {
	o := &waitOptions{Deps: d}
	cmd := command.New(cobra.Command{
		Use:     "wait RUN...",
		Short:   "Wait until runs are settled, or reach a status",
		GroupID: "inspect",
		Long: `Waits until every run is settled: it ended, asks something, or offers its work.
With --for it waits for these statuses instead. You can wait for an agent of a running session
before it has begun. Exit status: 0 no run failed, was stopped or needs a user, 1 a run failed or
was stopped, 5 the timeout passed, 6 the state is unknown, 8 a run needs a user.`,
		Example: `  agency wait fix-login --timeout 30m
  agency wait fix-login --for ready-for-review,completed`,
		Args:        command.TakesRuns,
		Annotations: map[string]string{command.ManyRuns: "yes"},
	}, o.run)
	cmd.Flags().StringSliceVar(&o.labels, "for", nil, "wait until each run has one of `STATUS,...`: ready-for-review, needs-input ...")
	command.DurationVar(cmd.Flags(), &o.timeout, "timeout", 0, "give up after this `DURATION`, such as 30m (0: never)")
	cmd.ValidArgsFunction = complete.Runs(d)
	complete.Values(cmd, "for", agency.LabelWords()...)
	return cmd
}

func (o *waitOptions) run(cmd *cobra.Command, args []string) error {
	o.Asks = true
	client, err := o.Client()
	if err != nil {
		return err
	}
	req := api.WaitRunsRequest{Runs: make([]string, 0, len(args)), For: command.OrEmpty(o.labels), TimeoutMS: command.Milliseconds(o.timeout)}
	for _, ref := range args {
		r, err := api.FindRun(cmd.Context(), client, ref)
		switch agent := agency.UnbegunAgent(err); {
		case agent != "":
			req.Runs = append(req.Runs, agent)
		case err != nil:
			return err
		default:
			req.Runs = append(req.Runs, string(r.ID))
		}
	}
	resp, err := api.Call(cmd.Context(), client, api.WaitRuns, req)
	if err != nil {
		return err
	}
	if resp.TimedOut {
		return agency.Errorf(agency.CodeWaitTimeout, "%s passed, and the wait is not over: %s", duration.Text(o.timeout), waiting(resp.Runs, len(args))).WithDetail("runs", resp.Runs)
	}
	if len(o.labels) == 0 {
		o.Status = outcome(resp.Runs)
	}
	return o.Print(resp, func(w io.Writer) { _, _ = io.WriteString(w, o.RunTable(resp.Runs, false)) })
}

// outcome returns the exit status for settled runs. A run that needs a user takes precedence over
// one that failed or was stopped.
func outcome(runs []api.Run) int {
	status := agency.ExitOK
	for i := range runs {
		switch l := runs[i].Status; {
		case l.NeedsUser():
			return agency.ExitNeedsUser
		case l == agency.LabelFailed, l == agency.Broken, l == agency.LabelKilled:
			status = agency.ExitError
		}
	}
	return status
}

// waiting returns what the awaited runs do, and how many of the wanted ones have not begun.
func waiting(runs []api.Run, wanted int) string {
	words := make([]string, 0, len(runs)+1)
	for i := range runs {
		words = append(words, runs[i].Ref()+": "+runs[i].Status.String())
	}
	if n := wanted - len(runs); n > 0 {
		words = append(words, fmt.Sprintf("agents of a session that have not begun: %d", n))
	}
	return strings.Join(words, ", ")
}
