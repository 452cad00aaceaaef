package cli

import (
	"time"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
)

func (a *App) sessionRetry() *cobra.Command {
	var failed, wait bool
	var changed string
	var timeout time.Duration
	cmd := command(cobra.Command{
		Use:   "retry SESSION",
		Short: "Run what a settled session left undone, in a new session",
		Long: `Starts a new session with the plan of one that has settled. Agents that were complete are complete in it, with their runs and results; the
others begin anew, in new runs. With --failed only those begin that failed or were cancelled because of a failure.

It is refused when the plan's files changed since the start. With --plan-changed ok the plan is the one of the old session. --wait and its
exit status are those of agency session start.`,
		Example: "  agency session retry latest\n  agency session retry 20260201-143022-abc12345 --failed --wait",
		Args:    takes("SESSION"),
	}, func(cmd *cobra.Command, args []string) error {
		ok, err := planChanged(cmd, changed)
		switch {
		case err != nil:
			return err
		case timeout != 0 && !wait:
			return agency.Errorf(agency.CodeUsage, "--timeout is for --wait").WithHint("%s --wait --timeout %s %s", cmd.CommandPath(), durationText(timeout), args[0])
		}
		resp, err := call(cmd.Context(), a, api.RetrySession, api.RetrySessionRequest{
			Session: args[0], Dir: a.Dir, Failed: failed, PlanChanged: ok, Env: a.Env, Config: a.callerConfig(),
		})
		if err != nil {
			return err
		}
		return a.begun(cmd.Context(), &resp, wait, timeout)
	})
	cmd.Flags().BoolVar(&failed, "failed", false, "only what failed, and what was cancelled because of it")
	cmd.Flags().BoolVar(&wait, "wait", false, "return when the new session has settled, or is paused for somebody")
	durationVar(cmd.Flags(), &timeout, "timeout", 0, "with --wait: give up waiting after this time, such as 30m (0: never); the session goes on")
	addPlanChanged(cmd, &changed)
	cmd.ValidArgsFunction = a.completeSessions
	return cmd
}
