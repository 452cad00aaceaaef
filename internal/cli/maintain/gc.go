package maintain

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
	"agency/internal/cli/term"
	"agency/internal/duration"
	"agency/internal/plain"
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
		Long: `Lists the ended runs that are not removed yet, what prevents the removal of each,
and the disk space of its worktree. A run is removable when its worktree is clean and its commits
are on another branch; agency keeps anything live, dirty, unmerged or unknown. It removes nothing
without --apply, which also removes the worktrees that agency made ahead of runs, and logs of checks
that are older than --older-than, unless a run still shows their verdict.`,
		Example: `  agency gc
  agency gc --older-than 24h --state completed --apply`,
		Args: command.Takes(),
	}, o.run)
	command.DurationVar(cmd.Flags(), &o.olderThan, "older-than", 7*duration.Day, "only runs that ended longer than this `DURATION` ago")
	cmd.Flags().StringSliceVar(&o.states, "state", nil, "only runs with one of `STATE,...`: completed, failed, stopped")
	cmd.Flags().BoolVar(&o.apply, "apply", false, "remove the removable runs")
	cmd.Flags().BoolVar(&o.branches, "delete-branches", false, "with --apply: delete the branches of these runs too")
	cmd.Flags().Bool("dry-run", false, "remove nothing, as without --apply")
	complete.Values(cmd, "state", "completed", "failed", "stopped")
	cmd.MarkFlagsMutuallyExclusive("apply", "dry-run")
	return cmd
}

func (o *collectOptions) run(cmd *cobra.Command, _ []string) error {
	resp, err := command.Call(cmd.Context(), o.Deps, api.CollectRuns, api.CollectRunsRequest{OlderThanMS: o.olderThan.Milliseconds(), States: command.OrEmpty(o.states), Apply: o.apply, DeleteBranches: o.branches})
	if err != nil {
		return err
	}
	return o.Print(resp, func(w io.Writer) {
		rows, removable, frees := [][]string{{"RUN", "STATUS", "FREES"}}, 0, int64(0)
		repos := slices.ContainsFunc(resp.Runs, func(r api.CollectedRun) bool { return r.Repo != resp.Runs[0].Repo })
		if repos {
			rows[0] = append(rows[0], "REPO")
		}
		rows[0] = append(rows[0], "GC")
		for _, r := range resp.Runs {
			if r.Removable {
				removable++
				frees += r.Bytes
			}
			row := []string{r.Ref, r.Status.String(), plain.ByteSize(r.Bytes)}
			if repos {
				row = append(row, term.SafeLine(filepath.Base(r.Repo)))
			}
			rows = append(rows, append(row, term.SafeLine(r.Reason)))
		}
		if len(rows) == 1 {
			o.Chat("no run has ended")
		} else {
			_, _ = io.WriteString(w, o.TextTable(rows))
		}
		if removable > 0 && !o.apply {
			o.Beside(fmt.Sprintf("%d could be removed, which frees %s", removable, plain.ByteSize(frees)), "to do it: add --apply")
		}
		switch n := len(resp.Standbys); {
		case n > 0 && o.apply:
			o.Chat("standby worktrees that were removed, too: %d", n)
		case n > 0:
			o.Chat("with --apply these go, too: %d standby worktrees (agency ls --standby)", n)
		}
		switch n, bytes := resp.CheckLogs, plain.ByteSize(resp.CheckLogBytes); {
		case n > 0 && o.apply:
			o.Chat("logs of checks that were removed, too: %d (%s)", n, bytes)
		case n > 0:
			o.Chat("with --apply these go, too: %d logs of checks (%s)", n, bytes)
		}
	})
}
