package maintain

import (
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/cli/command"
	"agency/internal/cli/term"
	"agency/internal/contract"
	"agency/internal/plain"
)

// schema is a JSON Schema that agency publishes.
type schema struct {
	Name string `json:"name"`
	Of   string `json:"of"` // what it describes, in a few words
	text string
}

func schemas() []schema {
	return []schema{
		{"runner-status", agency.ContractFile + ", what an agent reports of itself", contract.Schema},
		{"plan", "the plan of a session", agency.PlanSchema},
	}
}

// schemaOptions are the flags and dependencies of agency schema.
type schemaOptions struct {
	*command.Deps

	names []string
}

// NewSchema returns the command agency schema.
func NewSchema(d *command.Deps) *cobra.Command {
	o := &schemaOptions{Deps: d, names: []string{}}
	for _, s := range schemas() {
		o.names = append(o.names, s.Name)
	}
	return command.New(cobra.Command{
		Use:       "schema [NAME]",
		Short:     "Print the JSON Schema of a file that agency reads",
		GroupID:   "maintain",
		Long:      `Prints a JSON Schema (draft 2020-12); without NAME, the names of all.`,
		Example:   "  agency schema\n  agency schema runner-status > runner_status.schema.json",
		ValidArgs: o.names,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return nil
			}
			return command.Takes("NAME")(cmd, args)
		},
	}, o.run)
}

func (o *schemaOptions) run(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return o.Print(map[string]any{"schemas": schemas()}, func(w io.Writer) {
			var rows [][]string
			for _, s := range schemas() {
				rows = append(rows, []string{s.Name, s.Of})
			}
			_, _ = io.WriteString(w, term.Table(rows))
		})
	}
	i := slices.IndexFunc(schemas(), func(s schema) bool { return s.Name == args[0] })
	if i < 0 {
		err := agency.Errorf(agency.CodeUsage, "there is no schema %q; there are %s", args[0], strings.Join(o.names, ", "))
		if near := plain.Nearest(args[0], o.names); near != "" {
			return err.WithHint("did you mean: agency schema %s", near)
		}
		return err.WithHint("agency schema")
	}
	text := schemas()[i].text
	return o.Print(map[string]any{"name": args[0], "schema": json.RawMessage(text)}, func(w io.Writer) { _, _ = io.WriteString(w, text) })
}
