package run

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
)

// NewInterrupt returns the command agency interrupt.
func NewInterrupt(d *command.Deps) *cobra.Command {
	cmd := command.New(cobra.Command{
		Use:     "interrupt RUN",
		Short:   "End what a run's agent does now; the agent stays",
		GroupID: "run",
		Long: `Ends the turn of an agent in the mode protocol (agency run --mode protocol).
agency withdraws what the agent asked, and the agent waits for the next message. If earlier messages
wait for the agent, it begins with these at once, and the command prints how many. In the other
modes, use the agent's own key (agency attach) or agency stop.`,
		Example: "  agency interrupt fix-login",
		Args:    command.Takes("RUN"),
	}, func(cmd *cobra.Command, args []string) error {
		resp, err := command.Call(cmd.Context(), d, api.InterruptRun, api.RunRequest{Run: args[0]})
		if err != nil {
			return err
		}
		return d.Print(resp, func(w io.Writer) {
			switch {
			case !resp.Confirmed:
				_, _ = fmt.Fprintln(w, "interruption written, and not acknowledged yet")
			case resp.Queued > 0:
				_, _ = fmt.Fprintf(w, "interrupted; messages that it begins with now: %d\n", resp.Queued)
			default:
				_, _ = fmt.Fprintln(w, "interrupted")
			}
		})
	})
	cmd.ValidArgsFunction = complete.Live(d)
	return cmd
}
