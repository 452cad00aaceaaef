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

func (a *App) sessionWait() *cobra.Command {
	var attention bool
	var timeout time.Duration
	cmd := command(cobra.Command{
		Use:   "wait SESSION",
		Short: "Wait until a session has settled, or somebody is needed",
		Long: `Waits until every agent of a session is complete, failed or cancelled; with --attention it returns as soon as somebody is needed, too.
Exit status: 0 complete, 1 failed, 4 cancelled, 5 the time is up, 8 somebody is needed.`,
		Example: "  agency session wait active\n  agency session wait latest --attention --timeout 30m",
		Args:    takes("SESSION"),
	}, func(cmd *cobra.Command, args []string) error {
		if timeout < 0 {
			return agency.Errorf(agency.CodeUsage, "the timeout %s is negative", timeout)
		}
		return a.waitForSession(cmd.Context(), args[0], attention, timeout)
	})
	cmd.Flags().BoolVar(&attention, "attention", false, "return when somebody is needed, too")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "give up after this time, such as 30m (0: never)")
	cmd.ValidArgsFunction = a.completeSessions
	return cmd
}

func (a *App) waitForSession(ctx context.Context, ref string, attention bool, timeout time.Duration) error {
	resp, err := call(ctx, a, api.WaitSession, api.WaitSessionRequest{Session: ref, Dir: a.Dir, Attention: attention, TimeoutMS: timeout.Milliseconds()})
	if err != nil {
		return err
	}
	s := &resp.Session
	needed := attention && needsPerson(&resp)
	if !s.Status.Final() && !needed {
		return agency.Errorf(agency.CodeWaitTimeout, "%s passed and session %s is not over: %s", timeout, s.Ref(), s.Summary.String()).
			WithHint("agency session show %s", s.Ref())
	}
	switch {
	case needed:
		a.status = agency.ExitNeedsPerson
	case s.Status == agency.SessionFailed:
		a.status = agency.ExitError
	case s.Status == agency.SessionCancelled:
		a.status = agency.ExitConflict
	}
	return a.print(resp, func(w io.Writer) {
		if needed {
			_, _ = fmt.Fprintf(w, "session %s needs you: %s\n", s.Ref(), safeLine(needs(&resp)))
			return
		}
		_, _ = fmt.Fprintf(w, "session %s is %s: %s\n", s.Ref(), s.Status, s.Summary.String())
	})
}

// needsPerson says whether a session that runs goes no further until somebody acts.
func needsPerson(resp *api.ShowSessionResponse) bool {
	return !resp.Session.Status.Final() && needs(resp) != ""
}

// needs is what somebody is needed for. It is untrusted text.
func needs(resp *api.ShowSessionResponse) string {
	if resp.Session.Paused != "" {
		return "it is paused: " + resp.Session.Paused
	}
	for i := range resp.Agents {
		switch a := &resp.Agents[i]; {
		case a.Status == agency.AgentQueued && a.Error != "":
			return "agent " + a.ID + " is " + a.Error
		case a.Status == agency.AgentRunning && a.Label.NeedsPerson():
			return fmt.Sprintf("agent %s is %s: %s", a.ID, a.Label, a.Note)
		}
	}
	return ""
}
