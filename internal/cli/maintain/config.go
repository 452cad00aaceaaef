// Package maintain holds the commands about agency itself and about repositories: init, config,
// daemon, db, doctor and so on.
package maintain

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/cli/command"
	"agency/internal/cli/term"
)

// NewConfig returns the command agency config.
func NewConfig(d *command.Deps) *cobra.Command {
	return command.Group(cobra.Command{
		Use:     "config",
		Short:   "Show, check and change the configuration",
		GroupID: "maintain",
		Example: "  agency config show\n  agency config set defaults.runner codex",
	},
		command.New(cobra.Command{
			Use: "path", Short: "Print where the configuration is read from", Example: "  agency config path", Args: command.Takes(),
		}, func(*cobra.Command, []string) error {
			cfg, err := d.Config()
			if cfg == nil || cfg.Path == "" {
				return err // a mistake in the file does not change its path
			}
			return d.Print(map[string]any{"path": cfg.Path, "exists": cfg.Exists}, func(w io.Writer) { _, _ = fmt.Fprintln(w, term.SafeLine(cfg.Path)) })
		}),
		newConfigShow(d), newConfigGet(d), newConfigSet(d), newConfigEdit(d),
		command.New(cobra.Command{
			Use: "check", Short: "Check the configuration and print every problem", Example: "  agency config check", Args: command.Takes(),
		}, func(*cobra.Command, []string) error {
			cfg, err := d.Config()
			if err != nil {
				return allProblems(d, err)
			}
			return d.Print(map[string]any{"path": cfg.Path, "problems": []string{}}, func(w io.Writer) { _, _ = fmt.Fprintln(w, "ok") })
		}),
	)
}

// configShowOptions are the flags and dependencies of agency config show.
type configShowOptions struct {
	*command.Deps

	from bool
}

// newConfigShow returns the command agency config show.
func newConfigShow(d *command.Deps) *cobra.Command {
	o := &configShowOptions{Deps: d}
	cmd := command.New(cobra.Command{
		Use: "show", Short: "Print every setting and where it comes from", Example: "  agency config show\n  agency config show --origin=false", Args: command.Takes(),
	}, o.run)
	cmd.Flags().BoolVar(&o.from, "origin", true, "also print where each value comes from")
	return cmd
}

func (o *configShowOptions) run(*cobra.Command, []string) error {
	cfg, err := o.Config()
	if err != nil {
		return err
	}
	origins := cfg.Origins()
	return o.Print(map[string]any{"settings": origins}, func(w io.Writer) {
		rows := [][]string{{"KEY", "VALUE", "FROM"}}
		for _, o := range origins {
			rows = append(rows, []string{o.Key, term.SafeLine(o.Value), term.SafeLine(o.From)})
		}
		for i := range rows {
			if !o.from {
				rows[i] = rows[i][:2]
			}
		}
		_, _ = io.WriteString(w, term.Table(rows))
	})
}

// allProblems prints every problem of a configuration. With --json the error already has all of
// them.
func allProblems(d *command.Deps, err error) error {
	problems, _ := agency.AsError(err).Details["problems"].([]string)
	if d.JSON || len(problems) < 2 {
		return err
	}
	for _, problem := range problems {
		d.Chat("%s", term.SafeLine(problem))
	}
	return agency.Errorf(agency.CodeConfigInvalid, "the configuration has %d problems", len(problems))
}
