package session

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
	"agency/internal/cli/term"
	"agency/internal/duration"
)

// retryOptions are the flags and dependencies of agency session retry.
type retryOptions struct {
	*command.Deps

	failed, dryRun, wait bool
	changed              string
	timeout              time.Duration
}

// newRetry returns the command agency session retry.
func newRetry(d *command.Deps) *cobra.Command {
	o := &retryOptions{Deps: d}
	cmd := command.New(cobra.Command{
		Use:   "retry SESSION",
		Short: "Run what a settled session did not complete, in a new session",
		Long: `Starts a new session with the plan of one that has settled. Agents that were
complete stay complete in it, with their runs and results; the others start again, in new runs. With
--failed, only those start that failed, or that a failure cancelled.

agency refuses this when the plan's files changed since the start. With --plan-changed ok it uses
the plan of the old session. With --plan-changed new it uses the files as they are now, and first
shows the difference: an agent stays complete if its entry in the plan and the entries of all agents
before it are unchanged; all others run by the new plan. --dry-run only shows the difference.

--wait and its exit status are those of agency session start.`,
		Example: `  agency session retry latest
  agency session retry 20260201-143022-abc12345 --failed --wait
  agency session retry latest --plan-changed new --dry-run`,
		Args: command.Takes("SESSION"),
	}, o.run)
	cmd.Flags().BoolVar(&o.failed, "failed", false, "start only agents that failed, or that a failure cancelled")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "with --plan-changed new: start nothing, only show the difference")
	cmd.Flags().BoolVar(&o.wait, "wait", false, "return when the new session has settled, or is paused for a user")
	command.DurationVar(cmd.Flags(), &o.timeout, "timeout", 0, "with --wait: give up after this `DURATION`, such as 30m (0: never); the session continues")
	addPlanChanged(cmd, &o.changed, "`ok|new`: use the plan as it was at the start, or its files as they are now", planAsItWas, planAsItIs)
	cmd.ValidArgsFunction = complete.Sessions(d)
	return cmd
}

func (o *retryOptions) run(cmd *cobra.Command, args []string) error {
	err := checkPlanChanged(cmd, o.changed, planAsItWas, planAsItIs)
	switch {
	case err != nil:
		return err
	case o.timeout != 0 && !o.wait:
		return agency.Errorf(agency.CodeUsage, "--timeout is for --wait").WithHint("%s --wait --timeout %s %s", cmd.CommandPath(), duration.Text(o.timeout), args[0])
	case o.dryRun && o.wait:
		return agency.Errorf(agency.CodeUsage, "--dry-run starts nothing to wait for").WithHint("leave out --wait or --dry-run")
	case o.dryRun && o.changed != planAsItIs:
		return agency.Errorf(agency.CodeUsage, "--dry-run is for --plan-changed new").WithHint("what is complete already: agency session show %s", args[0])
	}
	req := api.RetrySessionRequest{
		Session: args[0], Dir: o.Dir, Failed: o.failed, PlanChanged: o.changed == planAsItWas, NewPlan: o.changed == planAsItIs,
		DryRun: o.dryRun, Env: o.Env, Config: o.CallerConfig(),
	}
	if req.NewPlan && !o.dryRun && !o.JSON {
		look := req
		look.DryRun = true
		resp, err := command.Call(cmd.Context(), o.Deps, api.RetrySession, look)
		if err != nil {
			return err
		}
		showDifference(o.Err, &resp)
		req.Session = resp.Session.Ref() // active may mean another one by now
	}
	resp, err := command.Call(cmd.Context(), o.Deps, api.RetrySession, req)
	if err != nil {
		return err
	}
	if o.dryRun {
		return o.Print(resp, func(w io.Writer) {
			o.Warn(resp.Warnings)
			showDifference(w, &resp)
		})
	}
	return begun(cmd.Context(), o.Deps, resp, &resp.Session, resp.Warnings, o.wait, o.timeout)
}

// showDifference writes how a new plan differs from that of a settled session, and which agents it
// runs.
func showDifference(w io.Writer, resp *api.RetrySessionResponse) {
	d := resp.Difference
	if d == nil {
		return
	}
	_, _ = fmt.Fprintf(w, "%s since session %s:\n", term.SafeLine(d.Plan), resp.Session.Ref())
	if len(d.Changes) == 0 {
		_, _ = fmt.Fprintln(w, "  no agent differs")
	}
	const most = 20 // changes
	rows := [][]string{}
	for _, c := range d.Changes[:min(len(d.Changes), most)] {
		rows = append(rows, []string{"  " + string(c.Change), c.Agent, strings.Join(c.Keys, ", ")})
	}
	_, _ = io.WriteString(w, term.Table(rows))
	if more := len(d.Changes) - most; more > 0 {
		_, _ = fmt.Fprintf(w, "  and %d more\n", more)
	}
	_, _ = fmt.Fprintf(w, "complete and unchanged: %s\nto run: %s\n", fewIDs(d.Kept), fewIDs(d.Runs))
}

// fewIDs names agents; of many the first.
func fewIDs(ids []string) string {
	const most = 12
	switch {
	case len(ids) == 0:
		return "none"
	case len(ids) > most:
		return fmt.Sprintf("%s and %d more", strings.Join(ids[:most], ", "), len(ids)-most)
	}
	return strings.Join(ids, ", ")
}
