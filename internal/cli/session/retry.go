package session

import (
	"time"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/duration"
)

// retryOptions are the flags and dependencies of agency session retry.
type retryOptions struct {
	*command.Deps

	failed, wait bool
	changed      string
	timeout      time.Duration
}

// newRetry returns the command agency session retry.
func newRetry(d *command.Deps) *cobra.Command {
	o := &retryOptions{Deps: d}
	cmd := command.New(cobra.Command{
		Use:   "retry SESSION",
		Short: "Run what a settled session did not complete, in a new session",
		Long: `Starts a new session with the plan of one that has settled. Agents that were
complete stay complete in it, with their runs and results; the others start again, in new runs. With
--failed, only those start that failed, or were cancelled because of a failure.

It is refused when the plan's files changed since the start. With --plan-changed ok it uses the plan
of the old session. --wait and its exit status are those of agency session start.`,
		Example: "  agency session retry latest\n  agency session retry 20260201-143022-abc12345 --failed --wait",
		Args:    command.Takes("SESSION"),
	}, o.run)
	cmd.Flags().BoolVar(&o.failed, "failed", false, "only agents that failed, or were cancelled because of a failure")
	cmd.Flags().BoolVar(&o.wait, "wait", false, "return when the new session has settled, or is paused for a user")
	command.DurationVar(cmd.Flags(), &o.timeout, "timeout", 0, "with --wait: give up waiting after this time, such as 30m (0: never); the session continues")
	addPlanChanged(cmd, &o.changed)
	cmd.ValidArgsFunction = d.CompleteSessions
	return cmd
}

func (o *retryOptions) run(cmd *cobra.Command, args []string) error {
	ok, err := planChanged(cmd, o.changed)
	switch {
	case err != nil:
		return err
	case o.timeout != 0 && !o.wait:
		return agency.Errorf(agency.CodeUsage, "--timeout is for --wait").WithHint("%s --wait --timeout %s %s", cmd.CommandPath(), duration.Text(o.timeout), args[0])
	}
	resp, err := command.Call(cmd.Context(), o.Deps, api.RetrySession, api.RetrySessionRequest{
		Session: args[0], Dir: o.Dir, Failed: o.failed, PlanChanged: ok, Env: o.Env, Config: o.CallerConfig(),
	})
	if err != nil {
		return err
	}
	return begun(cmd.Context(), o.Deps, &resp, o.wait, o.timeout)
}
