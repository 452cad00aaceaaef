package maintain

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/term"
)

// NewDoctor returns the command agency doctor.
func NewDoctor(d *command.Deps) *cobra.Command {
	sandbox := false
	cmd := command.New(cobra.Command{
		Use:     "doctor",
		Short:   "Check what agency depends on, and find leftovers",
		GroupID: "maintain",
		Long: `Checks git, tmux, the runners, the configuration, the data root and the daemon,
and lists what belongs to no run. It changes nothing.

With --sandbox it does only this: it starts each sandbox that works here, tries
from inside to reach files, sockets and a process that it made, and prints what
was refused.`,
		Example: "  agency doctor\n  agency doctor --sandbox",
		Args:    command.Takes(),
	}, func(cmd *cobra.Command, _ []string) error {
		resp, err := command.CallAnyway(cmd.Context(), d, api.Doctor, api.DoctorRequest{Dir: d.Dir, Env: d.Env, Config: d.CallerConfig(), Sandbox: sandbox})
		if err != nil && errors.Is(err, d.ConfigError()) {
			// Without a valid configuration no daemon starts to check the rest.
			e := agency.AsError(err)
			resp, err = api.DoctorResponse{Checks: []api.Check{{Name: "config", Level: "error", Text: e.Message, Fix: e.Hint}}, Trials: []agency.SandboxTrial{}}, nil
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
			_, _ = io.WriteString(w, trialTables(resp.Trials))
			for _, c := range resp.Checks {
				mark := map[string]string{"ok": "✓", "note": "○", "warning": "◐", "error": "✕"}[c.Level]
				_, _ = fmt.Fprintln(w, term.Hang(fmt.Sprintf("%s %-20s ", mark, c.Name), term.SafeLine(c.Text), d.Columns()))
				if c.Fix != "" {
					_, _ = fmt.Fprintln(w, term.Hang(fmt.Sprintf("  %-20s ", ""), "→ "+term.SafeLine(c.Fix), d.Columns()))
				}
			}
		})
	})
	cmd.Flags().BoolVar(&sandbox, "sandbox", false, "try to get out of the sandboxes of agents")
	return cmd
}

// trialTables returns a table for each level, with a line for each way out and a column for each
// network level, and the reason why the strictest one refused it; empty without trials.
func trialTables(trials []agency.SandboxTrial) string {
	var b strings.Builder
	for _, level := range agency.SandboxLevels() {
		b.WriteString(trialTable(slices.DeleteFunc(slices.Clone(trials), func(t agency.SandboxTrial) bool { return t.Level != level })))
	}
	return b.String()
}

func trialTable(trials []agency.SandboxTrial) string {
	ways, words, reasons := []string{}, map[string][]string{}, map[string]string{}
	for _, t := range trials {
		if words[t.Way] == nil {
			ways = append(ways, t.Way)
		}
		word := "open"
		if t.Refused {
			word, reasons[t.Way] = "refused", term.SafeLine(t.Reason)
		}
		words[t.Way] = append(words[t.Way], word)
	}
	if len(ways) == 0 {
		return ""
	}
	rows := [][]string{{"FROM INSIDE " + strings.ToUpper(string(trials[0].Level))}}
	for _, t := range trials {
		if t.Way == ways[0] {
			rows[0] = append(rows[0], strings.ToUpper(string(t.Network)))
		}
	}
	rows[0] = append(rows[0], "BY")
	for _, way := range ways {
		rows = append(rows, append(append([]string{way}, words[way]...), reasons[way]))
	}
	return term.Table(rows) + "\n"
}
