package run

import (
	"context"
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
		Short:   "Attach to the run that needs you most",
		GroupID: "run",
		Long: `Attaches to the run that agency ls lists first: one that asks, else a blocked
one, a stalled one, or one whose turn ended; of each, the one that has waited
longest. It looks in this repository or, outside of one, in all. It names and
skips a run whose terminal is gone. When no run needs you, it fails with exit
status 3, and names a run that cannot land if there is one. Runs that are done
or have failed do not wait for you: agency alerts lists them. With --print,
other commands can use the run: agency answer "$(agency next --print)".`,
		Example: `  agency next
  agency next --print`,
		Args: command.Takes(),
	}, func(cmd *cobra.Command, _ []string) error {
		client, err := d.Client()
		if err != nil {
			return err
		}
		req := api.ListRunsRequest{Dir: d.Dir, Status: []string{}, Order: api.OrderByNeed, Limit: mostWaiting}
		if allRepos {
			req.Dir = ""
		}
		resp, err := command.ListAround(cmd.Context(), client, req)
		if err != nil {
			return err
		}
		runs := resp.Runs
		if len(runs) == 0 || !runs[0].NeedsYou() {
			hint := "agency ls"
			alerts, err := api.Call(cmd.Context(), client, api.ListAlerts, api.ListAlertsRequest{Dir: req.Dir})
			if err == nil && len(alerts.Alerts) > 0 {
				hint = "see also what is done or failed: agency alerts"
				if al := view.LandingAlert(alerts.Alerts); al != nil {
					hint = al.Ref() + " " + al.Kind.Words() + ": " + view.AlertCommand(al) + "; see also: agency alerts"
				}
			}
			return agency.Errorf(agency.CodeRunNotFound, "no run needs you").WithHint("%s", hint)
		}
		if show {
			return d.Print(api.RunResponse{Run: runs[0]}, func(w io.Writer) { _, _ = fmt.Fprintln(w, runs[0].Ref()) })
		}
		return attachFirst(cmd.Context(), d, runs, exec)
	})
	cmd.Flags().BoolVar(&show, "print", false, "print the run's name instead of attaching")
	cmd.Flags().BoolVar(&allRepos, "all-repos", false, "choose from the runs of every repository")
	return cmd
}

// mostWaiting is how many of the waiting runs agency next looks at.
const mostWaiting = 100

// attachFirst attaches to the first of the runs that need the user. It names a run whose terminal
// is gone and skips it, so that the run does not block those behind it.
func attachFirst(ctx context.Context, d *command.Deps, runs []api.Run, exec Exec) error {
	var first error
	for i := range runs {
		if !runs[i].NeedsYou() {
			break
		}
		err := attach(ctx, d, runs[i].Handle, exec)
		if !agency.IsCode(err, agency.CodeTmuxSessionNotFound) {
			return err
		}
		if ref := runs[i].Ref(); first == nil {
			first = agency.AsError(err).WithHint("agency show %s; or continue it: agency resume %s", ref, ref)
		}
		if i+1 < len(runs) && runs[i+1].NeedsYou() {
			d.Chat("agency: note: %s needs you too, and its terminal is gone", runs[i].Ref())
		}
	}
	return first
}
