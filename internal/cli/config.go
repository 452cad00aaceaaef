package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/cli/term"
)

func (a *App) configCommand() *cobra.Command {
	return group(cobra.Command{
		Use:     "config",
		Short:   "Show and check the configuration",
		GroupID: "maintain",
		Example: "  agency config show",
	},
		command(cobra.Command{
			Use: "path", Short: "Print where the configuration is read from", Example: "  agency config path", Args: takes(),
		}, func(*cobra.Command, []string) error {
			cfg, err := a.config()
			if err != nil {
				return err
			}
			return a.print(map[string]any{"path": cfg.Path, "exists": cfg.Exists}, func(w io.Writer) { _, _ = fmt.Fprintln(w, term.SafeLine(cfg.Path)) })
		}),
		a.configShow(),
		command(cobra.Command{
			Use: "check", Short: "Check the configuration and print every problem", Example: "  agency config check", Args: takes(),
		}, func(*cobra.Command, []string) error {
			cfg, err := a.config()
			if err != nil {
				return a.allProblems(err)
			}
			return a.print(map[string]any{"path": cfg.Path, "problems": []string{}}, func(w io.Writer) { _, _ = fmt.Fprintln(w, "ok") })
		}),
	)
}

func (a *App) configShow() *cobra.Command {
	var from bool
	cmd := command(cobra.Command{
		Use: "show", Short: "Print every setting and where it comes from", Example: "  agency config show\n  agency config show --origin=false", Args: takes(),
	}, func(*cobra.Command, []string) error {
		cfg, err := a.config()
		if err != nil {
			return err
		}
		origins := cfg.Origins()
		return a.print(map[string]any{"settings": origins}, func(w io.Writer) {
			rows := [][]string{{"KEY", "VALUE", "FROM"}}
			for _, o := range origins {
				rows = append(rows, []string{o.Key, term.SafeLine(o.Value), term.SafeLine(o.From)})
			}
			for i := range rows {
				if !from {
					rows[i] = rows[i][:2]
				}
			}
			_, _ = io.WriteString(w, term.Table(rows))
		})
	})
	cmd.Flags().BoolVar(&from, "origin", true, "where each value comes from, too")
	return cmd
}

// allProblems tells people every problem of a configuration; with --json all of them are in the error already.
func (a *App) allProblems(err error) error {
	problems, _ := agency.AsError(err).Details["problems"].([]string)
	if a.json || len(problems) < 2 {
		return err
	}
	for _, problem := range problems {
		a.chat("%s", term.SafeLine(problem))
	}
	return agency.Errorf(agency.CodeConfigInvalid, "the configuration has %d problems", len(problems))
}
