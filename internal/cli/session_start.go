package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
)

func (a *App) sessionStart() *cobra.Command {
	o := &planFlags{}
	var wait bool
	var timeout time.Duration
	var source string
	cmd := command(cobra.Command{
		Use:   "start [FILE | FOLDER | -]",
		Short: "Run a plan of agents",
		Long: `Checks a plan as agency session plan does, and starts its agents: each as soon as those that it comes after are complete, and never
more at once than the limits say. The session goes on by itself, also after a crash or a reboot. What an agent starts from is
looked up when it starts, so a plan whose base is a branch sees what came to that branch meanwhile.

With --wait it returns when the session has settled, or is paused for somebody, as on_failure: ask does after a failure. Exit status
then: 0 complete, 1 failed, 4 cancelled, or complete without agents that were cancelled, 5 the time is up, 8 it is paused.`,
		Example: `  agency session start plan.yaml
  agency session start prompts/ --max-parallel 2 --wait --timeout 2h
  agency session start --agents claude_code:3 --prompt "fix the login test"`,
		Args: takesUpTo("FILE"),
	}, func(cmd *cobra.Command, args []string) error {
		src, err := o.source(a, cmd, args)
		switch {
		case err != nil:
			return err
		case timeout != 0 && !wait:
			return agency.Errorf(agency.CodeUsage, "--timeout is for --wait").WithHint("%s --wait --timeout %s ...", cmd.CommandPath(), durationText(timeout))
		}
		if _, err := a.config(); err != nil {
			return err
		}
		resp, err := call(cmd.Context(), a, api.StartSession, api.StartSessionRequest{
			Plan: src, Dir: a.Dir, Env: a.Env, Config: a.callerConfig(), Source: source,
		})
		if err != nil {
			return err
		}
		return a.begun(cmd.Context(), &resp, wait, timeout)
	})
	o.add(cmd)
	cmd.Flags().BoolVar(&wait, "wait", false, "return when the session has settled, or is paused for somebody")
	durationVar(cmd.Flags(), &timeout, "timeout", 0, "with --wait: give up waiting after this time, such as 30m (0: never); the session goes on")
	cmd.Flags().StringVar(&source, "source", "", "what the status file calls the kind of execution: orchestrate, execute-phase or run-prompt (default: orchestrate)")
	return cmd
}

// begun tells of a session that has begun, and waits for its end if that is wanted.
func (a *App) begun(ctx context.Context, resp *api.SessionResponse, wait bool, timeout time.Duration) error {
	s := &resp.Session
	if wait && a.json {
		return a.waitForSession(ctx, api.WaitSessionRequest{Session: s.Ref(), Paused: true}, timeout)
	}
	err := a.print(resp, func(w io.Writer) {
		_, _ = fmt.Fprintln(w, s.Ref())
		a.warn(resp.Warnings)
		a.chat("%s, at most %d at once", count(s.Summary.Total, "agent"), s.MaxParallel)
		if !wait {
			a.chat("watch: agency session watch   end: agency session cancel %s", s.Ref())
		}
	})
	if err != nil || !wait {
		return err
	}
	return a.waitForSession(ctx, api.WaitSessionRequest{Session: s.Ref(), Paused: true}, timeout)
}
