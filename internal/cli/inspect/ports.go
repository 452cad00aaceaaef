package inspect

import (
	"fmt"
	"io"
	"net"

	"github.com/spf13/cobra"

	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
	"agency/internal/cli/term"
)

// NewPorts returns the command agency ports.
func NewPorts(d *command.Deps) *cobra.Command {
	cmd := command.New(cobra.Command{
		Use:     "ports RUN",
		Short:   "Show where the ports of a run in a container are",
		GroupID: "inspect",
		Long: `Prints the ports of a run's container that [sandbox] ports of agency.toml
names, each with its address on this machine, and with a name for it that
browsers and curl know. They lead to what listens in the container, while the
run is live. docs/sandbox.md describes them.`,
		Example: "  agency ports fix-login",
		Args:    command.Takes("RUN"),
	}, func(cmd *cobra.Command, args []string) error {
		resp, err := command.Call(cmd.Context(), d, api.ShowRun, api.RunRequest{Run: args[0]})
		if err != nil {
			return err
		}
		return d.Print(resp, func(w io.Writer) {
			r := &resp.Run
			if r.Ports == nil {
				d.Chat("%s has no ports that this machine reaches; docs/sandbox.md: [sandbox] ports", term.SafeLine(r.Ref()))
				return
			}
			rows := [][]string{{"PORT", "ADDRESS", "NAME"}}
			for _, p := range r.Ports.Forwarded {
				row := []string{fmt.Sprint(p.Port), "-", "-"}
				if _, port, err := net.SplitHostPort(p.Address); err == nil && !r.State.Final() {
					row = []string{fmt.Sprint(p.Port), p.Address, term.SafeLine(net.JoinHostPort(r.Ref()+".localhost", port))}
				}
				rows = append(rows, row)
			}
			_, _ = io.WriteString(w, d.TextTable(rows))
		})
	})
	cmd.ValidArgsFunction = complete.Runs(d)
	return cmd
}
