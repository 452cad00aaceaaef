package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"agency/internal/api"
)

func (a *App) sessionPause() *cobra.Command {
	cmd := command(cobra.Command{
		Use:     "pause SESSION",
		Short:   "Start no more agents of a session; those that run go on",
		Example: "  agency session pause active",
		Args:    takes("SESSION"),
	}, func(cmd *cobra.Command, args []string) error {
		resp, err := call(cmd.Context(), a, api.PauseSession, api.SessionRequest{Session: args[0], Dir: a.Dir})
		if err != nil {
			return err
		}
		return a.print(resp, func(w io.Writer) {
			_, _ = fmt.Fprintf(w, "session %s is paused; go on: agency session resume %s\n", resp.Session.Ref(), resp.Session.Ref())
		})
	})
	cmd.ValidArgsFunction = a.completeSessions
	return cmd
}
