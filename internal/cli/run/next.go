package run

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/view"
)

// NewNext returns the command agency next.
func NewNext(d *command.Deps, exec Exec) *cobra.Command {
	var show, allRepos bool
	cmd := command.New(cobra.Command{
		Use:     "next",
		Short:   "Attach to the run that has waited for you longest",
		GroupID: "run",
		Long: `Attaches to the run that needs you and has waited longest, in this repository,
or outside of one in all. It is an error (exit status 3) when no run needs you.
With --print it goes into other commands: agency answer "$(agency next --print)".`,
		Example: `  agency next
  agency next --print`,
		Args: command.Takes(),
	}, func(cmd *cobra.Command, _ []string) error {
		client, err := d.Client()
		if err != nil {
			return err
		}
		req := api.ListRunsRequest{Dir: d.Dir, Status: []string{}}
		if allRepos {
			req.Dir = ""
		}
		resp, err := command.ListAround(cmd.Context(), client, req)
		if err != nil {
			return err
		}
		runs := view.ByNeed(resp.Runs)
		if len(runs) == 0 || !runs[0].Status.NeedsUser() {
			return agency.Errorf(agency.CodeRunNotFound, "no run needs you").WithHint("agency ls")
		}
		if show {
			return d.Print(api.RunResponse{Run: runs[0]}, func(w io.Writer) { _, _ = fmt.Fprintln(w, runs[0].Ref()) })
		}
		return attach(cmd.Context(), d, string(runs[0].ID), exec)
	})
	cmd.Flags().BoolVar(&show, "print", false, "print its name instead")
	cmd.Flags().BoolVar(&allRepos, "all-repos", false, "of every repository")
	return cmd
}
