package session

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
)

// newCancel returns the command agency session cancel.
func newCancel(d *command.Deps) *cobra.Command {
	cmd := command.New(cobra.Command{
		Use:   "cancel SESSION",
		Short: "Cancel a session and stop its agents; worktrees and branches stay",
		Long: `Ends a session: agency starts no queued agent, and stops the running agents with
all their processes. Worktrees, branches and logs stay. The command returns at once; agency session
wait waits until all have ended.`,
		Example: "  agency session cancel active && agency session wait latest",
		Args:    command.Takes("SESSION"),
	}, func(cmd *cobra.Command, args []string) error {
		resp, err := command.CallAnyway(cmd.Context(), d, api.CancelSession, api.SessionRequest{Session: args[0], Dir: d.Dir})
		if err != nil {
			return err
		}
		return d.Print(resp, func(w io.Writer) { _, _ = fmt.Fprintf(w, "session %s is being cancelled\n", resp.Session.Ref()) })
	})
	cmd.ValidArgsFunction = complete.Sessions(d)
	return cmd
}
