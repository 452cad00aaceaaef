package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/term"
)

func (a *App) doctorCommand() *cobra.Command {
	return command(cobra.Command{
		Use:     "doctor",
		Short:   "Check what agency depends on, and look for leftovers",
		GroupID: "maintain",
		Long:    "Checks git, tmux, the runners, the configuration, the data folder and the daemon, and lists what belongs to no run. It changes nothing.",
		Example: "  agency doctor",
		Args:    takes(),
	}, func(cmd *cobra.Command, _ []string) error {
		resp, err := call(cmd.Context(), a, api.Doctor, api.DoctorRequest{Dir: a.Dir, Env: a.Env, Config: a.callerConfig()})
		if err != nil && errors.Is(err, a.cfgErr) {
			// Without a configuration no daemon starts that could look at the rest.
			e := agency.AsError(err)
			resp, err = api.DoctorResponse{Checks: []api.Check{{Name: "config", Level: "error", Text: e.Message, Fix: e.Hint}}}, nil
		}
		if err != nil {
			return err
		}
		for _, c := range resp.Checks {
			if c.Level == "error" {
				a.status = agency.ExitError
			}
		}
		return a.print(resp, func(w io.Writer) {
			for _, c := range resp.Checks {
				mark := map[string]string{"ok": "✓", "note": "○", "warning": "◐", "error": "✕"}[c.Level]
				_, _ = fmt.Fprintln(w, term.Hang(fmt.Sprintf("%s %-20s ", mark, c.Name), term.SafeLine(c.Text), a.room()))
				if c.Fix != "" {
					_, _ = fmt.Fprintln(w, term.Hang(fmt.Sprintf("  %-20s ", ""), "→ "+term.SafeLine(c.Fix), a.room()))
				}
			}
		})
	})
}
