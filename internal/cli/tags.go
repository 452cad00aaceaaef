package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
)

func (a *App) tagsCommand() *cobra.Command {
	return group(cobra.Command{
		Use: "tags", Short: "Change the tags of runs", GroupID: "run",
		Long:    "Tags say what a run is: the watchdog watches those tagged worker, and alerts go to those tagged orchestrator.",
		Example: "  agency tags add plan-release orchestrator",
	}, a.tagsChange("add", "Add tags to a run"), a.tagsChange("rm", "Take tags away from a run"), a.tagsList())
}

func (a *App) tagsChange(name, short string) *cobra.Command {
	cmd := command(cobra.Command{
		Use: name + " RUN TAG...", Short: short, Example: "  agency tags " + name + " plan-release orchestrator",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return agency.Errorf(agency.CodeUsage, "%s takes a RUN and at least one TAG", cmd.CommandPath()).WithHint("%s --help", cmd.CommandPath())
			}
			return nil
		},
	}, func(cmd *cobra.Command, args []string) error {
		req := api.ChangeTagsRequest{Run: args[0], Add: args[1:], Remove: []string{}}
		if name == "rm" {
			req.Add, req.Remove = []string{}, args[1:]
		}
		resp, err := call(cmd.Context(), a, api.ChangeTags, req)
		if err != nil {
			return err
		}
		return a.print(resp, func(w io.Writer) { _, _ = fmt.Fprintln(w, strings.Join(resp.Run.Tags, " ")) })
	})
	cmd.ValidArgsFunction = a.completeRuns
	return cmd
}

func (a *App) tagsList() *cobra.Command {
	cmd := command(cobra.Command{
		Use: "ls RUN", Short: "Print the tags of a run", Example: "  agency tags ls plan-release", Args: takes("RUN"),
	}, func(cmd *cobra.Command, args []string) error {
		resp, err := call(cmd.Context(), a, api.ShowRun, api.RunRequest{Run: args[0]})
		if err != nil {
			return err
		}
		return a.print(api.RunResponse{Run: resp.Run}, func(w io.Writer) {
			for _, tag := range resp.Run.Tags {
				_, _ = fmt.Fprintln(w, tag)
			}
		})
	})
	cmd.ValidArgsFunction = a.completeRuns
	return cmd
}
