package run

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
	"agency/internal/cli/term"
)

// NewFlag returns the command agency flag.
func NewFlag(d *command.Deps) *cobra.Command {
	cmd := command.New(cobra.Command{
		Use:     "flag RUN REASON...",
		Short:   "Mark that a run needs attention, with the reason",
		GroupID: "run",
		Long: `Marks that a run needs attention. The mark, a flag, stays until agency unflag or
another attempt (agency resume), whatever the agent does. The run's owner gets an alert, as about a
request of the run. A request that the run makes later shows before the flag. A failed run stays
failed. agency gc keeps a run with a flag. Another reason replaces the previous one.

An agent can flag itself and the runs that it started. Put -- before a reason that begins with a
dash.`,
		Example: `  agency flag fix-login "the migration needs a second look"`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return agency.Errorf(agency.CodeUsage, "%s takes a RUN and the REASON", cmd.CommandPath()).WithHint("%s --help", cmd.CommandPath())
			}
			return nil
		},
	}, func(cmd *cobra.Command, args []string) error {
		reason := strings.TrimSpace(strings.Join(args[1:], " "))
		resp, err := command.Call(cmd.Context(), d, api.FlagRun, api.FlagRunRequest{Run: args[0], Reason: reason})
		if err != nil {
			return err
		}
		return d.Print(resp, func(w io.Writer) {
			r := &resp.Run
			_, _ = fmt.Fprintf(w, "%s is flagged: %s\n", r.Ref(), term.SafeLine(reason))
			if r.Status != agency.NeedsAttention {
				d.Chat("its status stays %s", r.Status)
			}
			if was := resp.Was; was != nil && was.Reason != reason {
				d.Chat("until now: %s", term.SafeLine(was.Reason))
			}
		})
	})
	cmd.ValidArgsFunction = complete.Runs(d)
	return cmd
}

// NewUnflag returns the command agency unflag.
func NewUnflag(d *command.Deps) *cobra.Command {
	cmd := command.New(cobra.Command{
		Use:     "unflag RUN",
		Short:   "Remove a run's flag",
		GroupID: "run",
		Long: `Removes the flag of a run. The run has the status of its agent again, and agency
resolves the alert about the flag.`,
		Example: "  agency unflag fix-login",
		Args:    command.Takes("RUN"),
	}, func(cmd *cobra.Command, args []string) error {
		resp, err := command.Call(cmd.Context(), d, api.UnflagRun, api.RunRequest{Run: args[0]})
		if err != nil {
			return err
		}
		return d.Print(resp, func(w io.Writer) {
			if resp.Was == nil {
				_, _ = fmt.Fprintf(w, "%s was not flagged\n", resp.Run.Ref())
				return
			}
			_, _ = fmt.Fprintf(w, "%s is no longer flagged: %s\n", resp.Run.Ref(), term.SafeLine(resp.Was.Reason))
		})
	})
	cmd.ValidArgsFunction = complete.Flagged(d)
	return cmd
}
