package cli

import (
	"io"
	"time"

	"github.com/spf13/cobra"

	"agency/internal/api"
	"agency/internal/cli/term"
)

func (a *App) collectCommand() *cobra.Command {
	var olderThan time.Duration
	var states []string
	var apply bool
	cmd := command(cobra.Command{
		Use:     "gc",
		Short:   "Propose ended runs that could be removed without losing anything",
		GroupID: "maintain",
		Long: `Lists the ended runs that are not removed, and what speaks against removing each. A run is removable when its worktree is clean and its
commits are on another branch; anything live, dirty, unmerged or unknown is kept. Nothing is removed without --apply.`,
		Example: `  agency gc
  agency gc --older-than 24h --state completed --apply`,
		Args: takes(),
	}, func(cmd *cobra.Command, _ []string) error {
		resp, err := call(cmd.Context(), a, api.CollectRuns, api.CollectRunsRequest{OlderThanMS: olderThan.Milliseconds(), States: orEmpty(states), Apply: apply})
		if err != nil {
			return err
		}
		return a.print(resp, func(w io.Writer) {
			rows, removable := [][]string{{"RUN", "STATE", "GC"}}, 0
			for _, r := range resp.Runs {
				if r.Removable {
					removable++
				}
				rows = append(rows, []string{r.Ref, string(r.State), term.SafeLine(r.Reason)})
			}
			if len(rows) == 1 {
				a.chat("no run has ended")
				return
			}
			_, _ = io.WriteString(w, a.textTable(rows))
			if removable > 0 && !apply {
				a.chat("%d could be removed; to do it: add --apply", removable)
			}
		})
	})
	durationVar(cmd.Flags(), &olderThan, "older-than", 7*day, "only runs that ended so long ago")
	cmd.Flags().StringSliceVar(&states, "state", nil, "only these: completed, failed, killed")
	cmd.Flags().BoolVar(&apply, "apply", false, "remove what is removable")
	return cmd
}
