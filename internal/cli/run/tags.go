package run

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
)

// NewTags returns the command agency tags.
func NewTags(d *command.Deps) *cobra.Command {
	return command.Group(cobra.Command{
		Use: "tags", Short: "Change the tags of runs", GroupID: "run",
		Long: `Tags describe what a run is: the watchdog watches runs tagged worker, and
alerts go to runs tagged orchestrator.`,
		Example: "  agency tags add plan-release orchestrator",
	}, newTagsChange(d, "add", "Add tags to a run"), newTagsChange(d, "rm", "Remove tags from a run"), newTagsList(d))
}

// tagsChangeOptions are the dependencies of agency tags add and rm.
type tagsChangeOptions struct {
	*command.Deps

	name string
}

// newTagsChange returns the command agency tags add or agency tags rm.
func newTagsChange(d *command.Deps, name, short string) *cobra.Command {
	o := &tagsChangeOptions{Deps: d, name: name}
	cmd := command.New(cobra.Command{
		Use: o.name + " RUN TAG...", Short: short, Example: "  agency tags " + o.name + " plan-release orchestrator",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return agency.Errorf(agency.CodeUsage, "%s takes a RUN and at least one TAG", cmd.CommandPath()).WithHint("%s --help", cmd.CommandPath())
			}
			return nil
		},
	}, o.run)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return complete.Runs(d)(cmd, args, word)
		}
		return complete.Tags(d)(cmd, args, word)
	}
	return cmd
}

func (o *tagsChangeOptions) run(cmd *cobra.Command, args []string) error {
	req := api.ChangeTagsRequest{Run: args[0], Add: args[1:], Remove: []string{}}
	if o.name == "rm" {
		req.Add, req.Remove = []string{}, args[1:]
	}
	resp, err := command.Call(cmd.Context(), o.Deps, api.ChangeTags, req)
	if err != nil {
		return err
	}
	return o.Print(resp, func(w io.Writer) { _, _ = fmt.Fprintln(w, strings.Join(resp.Run.Tags, " ")) })
}

// newTagsList returns the command agency tags ls.
func newTagsList(d *command.Deps) *cobra.Command {
	cmd := command.New(cobra.Command{
		Use: "ls RUN", Short: "Print the tags of a run", Example: "  agency tags ls plan-release", Args: command.Takes("RUN"),
	}, func(cmd *cobra.Command, args []string) error {
		resp, err := command.Call(cmd.Context(), d, api.ShowRun, api.RunRequest{Run: args[0]})
		if err != nil {
			return err
		}
		return d.Print(api.RunResponse{Run: resp.Run}, func(w io.Writer) {
			for _, tag := range resp.Run.Tags {
				_, _ = fmt.Fprintln(w, tag)
			}
		})
	})
	cmd.ValidArgsFunction = complete.Runs(d)
	return cmd
}
