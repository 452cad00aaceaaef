package session

import (
	"io"
	"time"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
)

// removeOptions are the flags and dependencies of agency session rm.
type removeOptions struct {
	*command.Deps

	olderThan time.Duration
	apply     bool
}

// newRemove returns the command agency session rm.
func newRemove(d *command.Deps) *cobra.Command {
	o := &removeOptions{Deps: d}
	cmd := command.New(cobra.Command{
		Use:   "rm {SESSION | --older-than AGE [--apply]}",
		Short: "Remove the records and status files of settled sessions",
		Long: `Removes a settled session from the record, with its status files. Its runs,
worktrees and branches stay. With --older-than it lists the sessions that ended longer ago than
that, of all repositories, and removes them only with --apply. agency never removes a running
session.`,
		Example: `  agency session rm latest
  agency session rm --older-than 7d
  agency session rm --older-than 7d --apply`,
		Args: command.TakesUpTo("SESSION"),
	}, o.run)
	command.DurationVar(cmd.Flags(), &o.olderThan, "older-than", 0, "only sessions that ended longer than this `DURATION` ago, such as 7d")
	cmd.Flags().BoolVar(&o.apply, "apply", false, "remove these sessions")
	cmd.ValidArgsFunction = complete.Sessions(d)
	return cmd
}

func (o *removeOptions) run(cmd *cobra.Command, args []string) error {
	req := api.RemoveSessionsRequest{Dir: o.Dir, Apply: o.apply}
	byAge := cmd.Flags().Changed("older-than")
	if byAge == (len(args) == 1) || o.apply && !byAge {
		return agency.Errorf(agency.CodeUsage, "%s needs a SESSION, or --older-than", cmd.CommandPath()).WithHint("%s --older-than 7d", cmd.CommandPath())
	}
	if byAge {
		req.OlderThanMS = o.olderThan.Milliseconds()
	} else {
		req.Session = args[0]
	}
	resp, err := command.Call(cmd.Context(), o.Deps, api.RemoveSessions, req)
	if err != nil {
		return err
	}
	return o.Print(resp, func(w io.Writer) {
		o.Warn(resp.Warnings)
		switch {
		case len(resp.Sessions) == 0:
			o.Chat("no session ended so long ago")
		case resp.Applied:
			o.Chat("removed %s", command.Count(len(resp.Sessions), "session"))
		default:
			_, _ = io.WriteString(w, table(o.Deps, resp.Sessions))
			o.Chat("%s could be removed; to do it: add --apply", command.Count(len(resp.Sessions), "session"))
		}
	})
}
