package session

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
	"agency/internal/duration"
)

// startOptions are the flags and dependencies of agency session start.
type startOptions struct {
	*command.Deps

	plan    *planFlags
	dryRun  bool
	wait    bool
	timeout time.Duration
	source  string
}

// newStart returns the command agency session start.
func newStart(d *command.Deps) *cobra.Command {
	o := &startOptions{Deps: d, plan: &planFlags{}}
	cmd := command.New(cobra.Command{
		Use:   "start [FILE | FOLDER | -]",
		Short: "Run a plan of agents",
		Long: `Checks a plan as agency session plan does, and starts its agents: each as soon as
its dependencies are complete, and never more at once than the limits allow. The session continues
by itself, even after a crash or a reboot. agency looks up the base of an agent when the agent
starts, so a plan that starts from a branch has the commits that the branch got meanwhile.

With --dry-run it starts nothing, and shows what agency session plan shows.

With --wait it returns when the session has settled, or is paused for a user, as after a failure
with on_failure: ask. Its exit status is then: 0 complete, 1 failed, 4 cancelled, or complete
without its cancelled agents, 5 the timeout passed, 8 the session is paused.`,
		Example: `  agency session start plan.yaml
  agency session start plan.yaml --dry-run
  agency session start prompts/ --max-parallel 2 --wait --timeout 2h
  agency session start --agents claude_code:3 --prompt "fix the login test"`,
		Args: command.TakesUpTo("FILE"),
	}, o.run)
	o.plan.add(d, cmd)
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "start nothing: check the plan and show what it would do")
	cmd.Flags().BoolVar(&o.wait, "wait", false, "return when the session has settled, or is paused for a user")
	command.DurationVar(cmd.Flags(), &o.timeout, "timeout", 0, "with --wait: give up after this `DURATION`, such as 30m (0: never); the session continues")
	cmd.Flags().StringVar(&o.source, "source", "", "the `KIND` of execution in the status file: orchestrate, execute-phase or run-prompt (default: orchestrate)")
	complete.Values(cmd, "source", sources...)
	return cmd
}

func (o *startOptions) run(cmd *cobra.Command, args []string) error {
	if o.dryRun && o.wait {
		return agency.Errorf(agency.CodeUsage, "--dry-run starts nothing to wait for").WithHint("leave out --wait or --dry-run")
	}
	if o.dryRun {
		plan := &planOptions{Deps: o.Deps, plan: o.plan}
		return plan.run(cmd, args)
	}
	src, err := o.plan.source(o.Deps, cmd, args)
	switch {
	case err != nil:
		return err
	case o.timeout != 0 && !o.wait:
		return agency.Errorf(agency.CodeUsage, "--timeout is for --wait").WithHint("%s --wait --timeout %s ...", cmd.CommandPath(), duration.Text(o.timeout))
	}
	if _, err := o.Config(); err != nil {
		return err
	}
	resp, err := command.Call(cmd.Context(), o.Deps, api.StartSession, api.StartSessionRequest{
		Plan: src, Dir: o.Dir, Env: o.Env, Config: o.CallerConfig(), Source: o.source,
	})
	if err != nil {
		return err
	}
	return begun(cmd.Context(), o.Deps, resp, &resp.Session, resp.Warnings, o.wait, o.timeout)
}

// begun prints a session that has begun, or with --json the response. With wait it also waits for
// the end of the session.
func begun(ctx context.Context, d *command.Deps, resp any, s *api.Session, warnings []string, wait bool, timeout time.Duration) error {
	if wait && d.JSON {
		return await(ctx, d, api.WaitSessionRequest{Session: s.Ref(), Paused: true}, timeout)
	}
	err := d.Print(resp, func(w io.Writer) {
		_, _ = fmt.Fprintln(w, s.Ref())
		d.Warn(warnings)
		d.Chat("%s, at most %d at once", command.Count(s.Summary.Total, "agent"), s.MaxParallel)
		if !wait {
			d.Beside("watch: agency session watch", "end: agency session cancel "+s.Ref())
		}
	})
	if err != nil || !wait {
		return err
	}
	return await(ctx, d, api.WaitSessionRequest{Session: s.Ref(), Paused: true}, timeout)
}
