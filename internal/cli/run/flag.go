package run

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/term"
)

// NewFlag returns the command agency flag.
func NewFlag(d *command.Deps) *cobra.Command {
	cmd := command.New(cobra.Command{
		Use:     "flag RUN REASON...",
		Short:   "Have a run need attention, with the reason",
		GroupID: "run",
		Long: `Says that somebody must look at a run. It needs attention from then on, whatever its agent does, until agency unflag or another
attempt (agency resume); who should act is alerted, as when it asks for something. What it asks after that shows first. A run that failed
stays failed. agency gc leaves it alone. Another reason takes the place of the one before.

An agent can flag itself and what it started. Put -- before a reason that begins with a dash.`,
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
	cmd.ValidArgsFunction = d.CompleteRuns
	return cmd
}

// NewUnflag returns the command agency unflag.
func NewUnflag(d *command.Deps) *cobra.Command {
	cmd := command.New(cobra.Command{
		Use:     "unflag RUN",
		Short:   "Take a run's flag away",
		GroupID: "run",
		Long:    "Takes away what agency flag said of a run. What its agent does is its status again, and the alert about the flag is over.",
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
	cmd.ValidArgsFunction = d.CompleteFlagged
	return cmd
}
