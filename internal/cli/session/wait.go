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
	"agency/internal/cli/term"
	"agency/internal/duration"
	"agency/internal/view"
)

// waitOptions are the flags and dependencies of agency session wait.
type waitOptions struct {
	*command.Deps

	attention bool
	timeout   time.Duration
}

// newWait returns the command agency session wait.
func newWait(d *command.Deps) *cobra.Command {
	o := &waitOptions{Deps: d}
	cmd := command.New(cobra.Command{
		Use:   "wait SESSION",
		Short: "Wait until a session has settled or needs attention",
		Long: `Waits until every agent of a session is complete, failed or cancelled, and
its result is known; with --attention it also returns as soon as the session needs a user. Exit
status: 0 complete, 1 failed, 4 cancelled, or complete without its cancelled agents, 5 the timeout
passed, 6 the state is unknown, 8 the session needs a user.`,
		Example: "  agency session wait active\n  agency session wait latest --attention --timeout 30m",
		Args:    command.Takes("SESSION"),
	}, o.run)
	cmd.Flags().BoolVar(&o.attention, "attention", false, "return when the session needs a user too")
	command.DurationVar(cmd.Flags(), &o.timeout, "timeout", 0, "give up after this `DURATION`, such as 30m (0: never)")
	cmd.ValidArgsFunction = complete.Sessions(d)
	return cmd
}

func (o *waitOptions) run(cmd *cobra.Command, args []string) error {
	o.Asks = true
	client, err := o.Client()
	if err != nil {
		return err
	}
	// Another session can be the latest by the time of the second request.
	s, err := find(cmd.Context(), o.Deps, client, args)
	if err != nil {
		return err
	}
	return await(cmd.Context(), o.Deps, api.WaitSessionRequest{Session: s.Session.Ref(), Attention: o.attention}, o.timeout)
}

// await waits for the session that a request names by its id.
func await(ctx context.Context, d *command.Deps, req api.WaitSessionRequest, timeout time.Duration) error {
	d.Asks = true
	req.Dir, req.TimeoutMS = d.Dir, command.Milliseconds(timeout)
	resp, err := command.Call(ctx, d, api.WaitSession, req)
	if err != nil {
		return err
	}
	s := &resp.Session
	needed := req.Attention && s.NeedsUser() || req.Paused && s.Stopped()
	switch {
	case needed:
		d.Status = agency.ExitNeedsUser
	case s.Status.Final():
		d.Status = exitStatus(s)
	default:
		return agency.Errorf(agency.CodeWaitTimeout, "%s passed and session %s has not settled: %s", duration.Text(timeout), s.Ref(), s.Summary.String()).
			WithHint("agency session show %s", s.Ref())
	}
	return d.Print(resp, func(w io.Writer) {
		if needed {
			_, _ = fmt.Fprintf(w, "session %s needs you: %s\n", s.Ref(), term.SafeLine(view.SessionNeeds(&resp)))
			return
		}
		_, _ = fmt.Fprintf(w, "session %s is %s\n", s.Ref(), term.SafeLine(view.SessionEnding(&resp)))
	})
}

// exitStatus returns the exit status of a settled session. A session that is complete without some
// of its agents is not a success.
func exitStatus(s *api.Session) int {
	switch {
	case s.Status == agency.SessionFailed:
		return agency.ExitError
	case s.Status == agency.SessionCancelled, s.Summary.Cancelled > 0:
		return agency.ExitConflict
	default:
		return agency.ExitOK
	}
}
