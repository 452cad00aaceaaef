package run

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
	"agency/internal/cli/term"
)

// removeOptions are the flags and dependencies of agency rm.
type removeOptions struct {
	*command.Deps

	force, discard, deleteBranch bool
}

// NewRemove returns the command agency rm.
func NewRemove(d *command.Deps) *cobra.Command {
	o := &removeOptions{Deps: d}
	cmd := command.New(cobra.Command{
		Use:     "rm RUN...",
		Aliases: []string{"remove"},
		Short:   "Remove an ended run's worktree and session",
		GroupID: "run",
		Long: `Removes the worktree and the tmux session of a run that has ended; -f stops a live
run first. Unless you give --discard, agency first saves under refs/agency/snapshots what would be
lost: work that is in no commit, and commits on no branch that stays. It deletes the run's branch if
the branch has no commits of its own. Any other branch stays, unless you give --delete-branch, now
or later. For a run that is already removed, agency refuses --delete-branch when the branch has
commits that are nowhere else. The record and the logs stay. Files that git ignores are not saved:
they go with the worktree.`,
		Example:     "  agency rm fix-login",
		Args:        command.TakesRuns,
		Annotations: map[string]string{command.ManyRuns: "yes"},
	}, o.run)
	cmd.Flags().BoolVarP(&o.force, "force", "f", false, "stop the run first if it is live")
	cmd.Flags().BoolVar(&o.discard, "discard", false, "save nothing: delete the work that is in no commit")
	cmd.Flags().BoolVar(&o.deleteBranch, "delete-branch", false, "delete the run's branch too")
	cmd.ValidArgsFunction = complete.Runs(d)
	return cmd
}

func (o *removeOptions) run(cmd *cobra.Command, args []string) error {
	return o.Each(cmd, args, func(ref string) error {
		return o.remove(cmd.Context(), api.RemoveRunRequest{Run: ref, Stop: o.force, Discard: o.discard, DeleteBranch: o.deleteBranch})
	})
}

func (o *removeOptions) remove(ctx context.Context, req api.RemoveRunRequest) error {
	resp, err := command.Call(ctx, o.Deps, api.RemoveRun, req)
	if err != nil {
		return err
	}
	return o.Print(resp, func(w io.Writer) {
		if resp.Already {
			_, _ = fmt.Fprintf(w, "%s was removed already\n", req.Run)
		} else {
			_, _ = fmt.Fprintf(w, "removed %s\n", req.Run)
		}
		if s := resp.Snapshot; s != nil {
			_, _ = fmt.Fprintf(w, "saved its work as %s\nget it back: agency snapshot restore %s\n", s.Ref, req.Run)
		}
		switch {
		case resp.Branch != "":
			_, _ = fmt.Fprintf(w, "branch %s stays\n", term.SafeLine(resp.Branch))
		case req.DeleteBranch:
			_, _ = fmt.Fprintln(w, "its branch is deleted")
		case !resp.Already && len(resp.Warnings) == 0:
			_, _ = fmt.Fprintln(w, "its branch is gone too: nothing was on it alone")
		}
		for _, warning := range resp.Warnings {
			o.Chat("agency: note: %s", term.SafeLine(warning))
		}
	})
}
