package maintain

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/term"
)

// NewDoctor returns the command agency doctor.
func NewDoctor(d *command.Deps) *cobra.Command {
	return command.New(cobra.Command{
		Use:     "doctor",
		Short:   "Check what agency depends on, and find leftovers",
		GroupID: "maintain",
		Long: `Checks git, tmux, the runners, the configuration, the data folder and the
daemon, and lists what belongs to no run. It changes nothing.`,
		Example: "  agency doctor",
		Args:    command.Takes(),
	}, func(cmd *cobra.Command, _ []string) error {
		resp, err := command.CallAnyway(cmd.Context(), d, api.Doctor, api.DoctorRequest{Dir: d.Dir, Env: d.Env, Config: d.CallerConfig()})
		if err != nil && errors.Is(err, d.ConfigError()) {
			// Without a valid configuration no daemon starts to check the rest.
			e := agency.AsError(err)
			resp, err = api.DoctorResponse{Checks: []api.Check{{Name: "config", Level: "error", Text: e.Message, Fix: e.Hint}}}, nil
		}
		if err != nil {
			return err
		}
		for _, c := range resp.Checks {
			if c.Level == "error" {
				d.Status = agency.ExitError
			}
		}
		return d.Print(resp, func(w io.Writer) {
			for _, c := range resp.Checks {
				mark := map[string]string{"ok": "✓", "note": "○", "warning": "◐", "error": "✕"}[c.Level]
				_, _ = fmt.Fprintln(w, term.Hang(fmt.Sprintf("%s %-20s ", mark, c.Name), term.SafeLine(c.Text), d.Columns()))
				if c.Fix != "" {
					_, _ = fmt.Fprintln(w, term.Hang(fmt.Sprintf("  %-20s ", ""), "→ "+term.SafeLine(c.Fix), d.Columns()))
				}
			}
		})
	})
}
