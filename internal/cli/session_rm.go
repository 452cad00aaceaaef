package cli

import (
	"io"
	"time"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
)

func (a *App) sessionRemove() *cobra.Command {
	var olderThan time.Duration
	var apply bool
	cmd := command(cobra.Command{
		Use:   "rm {SESSION | --older-than AGE [--apply]}",
		Short: "Remove the records and status files of settled sessions",
		Long: `Removes a session that has settled from the record, with its status files. Its runs, worktrees and branches stay. With --older-than it
lists those that ended so long ago, of all repositories, and removes them only with --apply. One that is running is never removed.`,
		Example: `  agency session rm latest
  agency session rm --older-than 7d
  agency session rm --older-than 7d --apply`,
		Args: takesUpTo("SESSION"),
	}, func(cmd *cobra.Command, args []string) error {
		req := api.RemoveSessionsRequest{Dir: a.Dir, Apply: apply}
		byAge := cmd.Flags().Changed("older-than")
		if byAge == (len(args) == 1) || apply && !byAge {
			return agency.Errorf(agency.CodeUsage, "%s wants a SESSION, or --older-than", cmd.CommandPath()).WithHint("%s --older-than 7d", cmd.CommandPath())
		}
		if byAge {
			req.OlderThanMS = olderThan.Milliseconds()
		} else {
			req.Session = args[0]
		}
		resp, err := call(cmd.Context(), a, api.RemoveSessions, req)
		if err != nil {
			return err
		}
		return a.print(resp, func(w io.Writer) {
			a.warn(resp.Warnings)
			switch {
			case len(resp.Sessions) == 0:
				a.chat("no session ended so long ago")
			case resp.Applied:
				a.chat("removed %s", count(len(resp.Sessions), "session"))
			default:
				_, _ = io.WriteString(w, a.sessionTable(resp.Sessions))
				a.chat("%s could be removed; to do it: add --apply", count(len(resp.Sessions), "session"))
			}
		})
	})
	durationVar(cmd.Flags(), &olderThan, "older-than", 0, "those that ended so long ago: 7d, 12h")
	cmd.Flags().BoolVar(&apply, "apply", false, "remove them")
	cmd.ValidArgsFunction = a.completeSessions
	return cmd
}
