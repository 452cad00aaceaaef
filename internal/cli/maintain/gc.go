package maintain

import (
	"io"
	"time"

	"github.com/spf13/cobra"

	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/term"
	"agency/internal/duration"
)

// collectOptions are the flags and dependencies of agency gc.
type collectOptions struct {
	*command.Deps

	olderThan time.Duration
	states    []string
	apply     bool
	branches  bool
}

// NewCollect returns the command agency gc.
func NewCollect(d *command.Deps) *cobra.Command {
	o := &collectOptions{Deps: d}
	cmd := command.New(cobra.Command{
		Use:     "gc",
		Short:   "List ended runs that can be removed without losing work",
		GroupID: "maintain",
		Long: `Lists the ended runs that are not removed yet, and what prevents the removal
of each. A run is removable when its worktree is clean and its commits are on another branch;
anything live, dirty, unmerged or unknown is kept. Nothing is removed without --apply.`,
		Example: `  agency gc
  agency gc --older-than 24h --state completed --apply`,
		Args: command.Takes(),
	}, o.run)
	command.DurationVar(cmd.Flags(), &o.olderThan, "older-than", 7*duration.Day, "only runs that ended longer ago than this")
	cmd.Flags().StringSliceVar(&o.states, "state", nil, "only these: completed, failed, stopped")
	cmd.Flags().BoolVar(&o.apply, "apply", false, "remove the removable runs")
	cmd.Flags().BoolVar(&o.branches, "delete-branches", false, "with --apply, delete the branches of these runs too")
	cmd.Flags().Bool("dry-run", false, "remove nothing, as without --apply")
	cmd.MarkFlagsMutuallyExclusive("apply", "dry-run")
	return cmd
}

func (o *collectOptions) run(cmd *cobra.Command, _ []string) error {
	resp, err := command.Call(cmd.Context(), o.Deps, api.CollectRuns, api.CollectRunsRequest{OlderThanMS: o.olderThan.Milliseconds(), States: command.OrEmpty(o.states), Apply: o.apply, DeleteBranches: o.branches})
	if err != nil {
		return err
	}
	return o.Print(resp, func(w io.Writer) {
		rows, removable := [][]string{{"RUN", "STATE", "GC"}}, 0
		for _, r := range resp.Runs {
			if r.Removable {
				removable++
			}
			rows = append(rows, []string{r.Ref, r.State.String(), term.SafeLine(r.Reason)})
		}
		if len(rows) == 1 {
			o.Chat("no run has ended")
			return
		}
		_, _ = io.WriteString(w, o.TextTable(rows))
		if removable > 0 && !o.apply {
			o.Chat("%d could be removed; to do it: add --apply", removable)
		}
	})
}
