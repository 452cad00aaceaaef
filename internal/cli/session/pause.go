package session

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
)

// newPause returns the command agency session pause.
func newPause(d *command.Deps) *cobra.Command {
	cmd := command.New(cobra.Command{
		Use:     "pause SESSION",
		Short:   "Stop starting agents of a session; running agents continue",
		Example: "  agency session pause active",
		Args:    command.Takes("SESSION"),
	}, func(cmd *cobra.Command, args []string) error {
		resp, err := command.Call(cmd.Context(), d, api.PauseSession, api.SessionRequest{Session: args[0], Dir: d.Dir})
		if err != nil {
			return err
		}
		return d.Print(resp, func(w io.Writer) {
			_, _ = fmt.Fprintf(w, "session %s is paused; continue: agency session resume %s\n", resp.Session.Ref(), resp.Session.Ref())
		})
	})
	cmd.ValidArgsFunction = complete.Sessions(d)
	return cmd
}
