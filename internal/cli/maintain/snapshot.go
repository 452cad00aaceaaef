package maintain

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
	"agency/internal/cli/term"
)

// NewSnapshot returns the command agency snapshot.
func NewSnapshot(d *command.Deps) *cobra.Command {
	cmd := command.New(cobra.Command{
		Use:     "snapshot RUN",
		Short:   "Save a run's uncommitted work, and get it back",
		GroupID: "maintain",
		Long: `A snapshot holds everything in a run's worktree that is not ignored, as
commits under refs/agency/snapshots. The worktree, its index and its branch stay as they are. agency
rm takes a snapshot by itself before work would be lost.`,
		Example: "  agency snapshot fix-login\n  agency snapshot restore fix-login",
		Args:    command.Takes("RUN"),
	}, func(cmd *cobra.Command, args []string) error {
		resp, err := command.Call(cmd.Context(), d, api.TakeSnapshot, api.RunRequest{Run: args[0]})
		if err != nil {
			return err
		}
		return d.Print(resp, func(w io.Writer) {
			if resp.Snapshot == nil {
				_, _ = fmt.Fprintln(w, "nothing to save")
				return
			}
			_, _ = fmt.Fprintf(w, "saved %s as %s\n", command.Count(resp.Snapshot.Files, "file"), resp.Snapshot.Ref)
			for _, nested := range resp.Snapshot.Nested {
				d.Chat("agency: note: %s is a repository of its own and is not saved", term.SafeLine(nested))
			}
		})
	})
	cmd.ValidArgsFunction = complete.Runs(d)
	cmd.AddCommand(newSnapshotList(d), newSnapshotShow(d), newSnapshotRestore(d))
	return cmd
}

// newSnapshotList returns the command agency snapshot ls.
func newSnapshotList(d *command.Deps) *cobra.Command {
	cmd := command.New(cobra.Command{
		Use: "ls RUN", Aliases: []string{"list"}, Short: "List the snapshots of a run", Example: "  agency snapshot ls fix-login", Args: command.Takes("RUN"),
	}, func(cmd *cobra.Command, args []string) error {
		resp, err := command.Call(cmd.Context(), d, api.ListSnapshots, api.RunRequest{Run: args[0]})
		if err != nil {
			return err
		}
		return d.Print(resp, func(w io.Writer) {
			rows := [][]string{{"NUMBER", "TAKEN", "COMMIT", "WHAT"}}
			for _, s := range resp.Snapshots {
				rows = append(rows, []string{strconv.Itoa(s.Number), s.At.Local().Format(time.DateTime), fmt.Sprintf("%.12s", s.Commit), term.SafeLine(s.Message)})
			}
			if len(rows) == 1 {
				d.Chat("%s has no snapshots", args[0])
				return
			}
			_, _ = io.WriteString(w, d.TextTable(rows))
		})
	})
	cmd.ValidArgsFunction = complete.Runs(d)
	return cmd
}

// completeSnapshots offers runs, and then the snapshots of the run.
func completeSnapshots(d *command.Deps) cobra.CompletionFunc {
	ofRun := complete.Of(d, api.ListSnapshots, func(run string) api.RunRequest { return api.RunRequest{Run: run} },
		func(resp *api.ListSnapshotsResponse) []string {
			words := make([]string, 0, len(resp.Snapshots))
			for _, s := range resp.Snapshots {
				words = append(words, complete.Described(strconv.Itoa(s.Number), s.Message))
			}
			return words
		})
	return complete.Then(complete.Runs(d), ofRun)
}

// snapshotNumber reads an optional number after the run; 0 is the newest.
func snapshotNumber(cmd *cobra.Command, args []string) (int, error) {
	switch len(args) {
	case 1:
		return 0, nil
	case 2:
		if n, err := strconv.Atoi(args[1]); err == nil && n > 0 {
			return n, nil
		}
		return 0, agency.Errorf(agency.CodeUsage, "%q is not the number of a snapshot", args[1]).WithHint("agency snapshot ls %s", args[0])
	default:
		return 0, command.Takes("RUN", "[NUMBER]")(cmd, args)
	}
}

// newSnapshotShow returns the command agency snapshot show.
func newSnapshotShow(d *command.Deps) *cobra.Command {
	cmd := command.New(cobra.Command{
		Use: "show RUN [NUMBER]", Short: "Show the files of a snapshot (default: the newest)", Example: "  agency snapshot show fix-login 2",
		Args: cobra.ArbitraryArgs,
	}, func(cmd *cobra.Command, args []string) error {
		number, err := snapshotNumber(cmd, args)
		if err != nil {
			return err
		}
		resp, err := command.Call(cmd.Context(), d, api.ShowSnapshot, api.SnapshotRequest{Run: args[0], Number: number})
		if err != nil {
			return err
		}
		return d.Print(resp, func(w io.Writer) {
			_, _ = fmt.Fprintf(w, "%s  %s\n", resp.Snapshot.Ref, term.SafeLine(resp.Snapshot.Message))
			for _, c := range resp.Changes {
				_, _ = fmt.Fprintf(w, "%s  %s\n", c.Status, term.SafeLine(c.Path))
			}
			d.Chat("the whole difference: git diff %.12s %s", resp.BaseCommit, resp.Snapshot.Ref)
		})
	})
	cmd.ValidArgsFunction = completeSnapshots(d)
	return cmd
}

// snapshotRestoreOptions are the flags and dependencies of agency snapshot restore.
type snapshotRestoreOptions struct {
	*command.Deps

	branch string
}

// newSnapshotRestore returns the command agency snapshot restore.
func newSnapshotRestore(d *command.Deps) *cobra.Command {
	o := &snapshotRestoreOptions{Deps: d}
	cmd := command.New(cobra.Command{
		Use: "restore RUN [NUMBER]", Short: "Make a branch at a snapshot (default: the newest)",
		Long: `Makes a new branch at a snapshot. It changes no file, worktree or other branch.`,
		Example: `  agency snapshot restore fix-login
  agency snapshot restore fix-login 2 --branch rescued`,
		Args: cobra.ArbitraryArgs,
	}, o.run)
	cmd.Flags().StringVar(&o.branch, "branch", "", "name the new branch `BRANCH` (default: agency/restored-HANDLE-NUMBER)")
	cmd.ValidArgsFunction = completeSnapshots(d)
	return cmd
}

func (o *snapshotRestoreOptions) run(cmd *cobra.Command, args []string) error {
	number, err := snapshotNumber(cmd, args)
	if err != nil {
		return err
	}
	resp, err := command.Call(cmd.Context(), o.Deps, api.RestoreSnapshot, api.RestoreSnapshotRequest{Run: args[0], Number: number, Branch: o.branch})
	if err != nil {
		return err
	}
	return o.Print(resp, func(w io.Writer) {
		_, _ = fmt.Fprintln(w, term.SafeLine(resp.Branch))
		o.Chat("look at it: git log --stat %s   work on it: git switch %s", term.SafeLine(resp.Branch), term.SafeLine(resp.Branch))
	})
}
