package inspect

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
	"agency/internal/cli/term"
	"agency/internal/plain"
)

// diffOptions are the flags and dependencies of agency diff.
type diffOptions struct {
	*command.Deps

	stat, names, ignoreSpace bool
	base                     string
	context                  int
}

// NewDiff returns the command agency diff.
func NewDiff(d *command.Deps) *cobra.Command {
	o := &diffOptions{Deps: d}
	cmd := command.New(cobra.Command{
		Use:     "diff RUN",
		Short:   "Show what a run changed since it began",
		GroupID: "inspect",
		Long: `Compares the worktree of a run with the commit that it started from: its
commits, uncommitted changes and new files that are not ignored. Without a worktree it shows the
run's branch. With --base last-turn it shows what the agent changed since it last rested before its
present or last turn: what your last message led to.`,
		Example:           "  agency diff fix-login\n  agency diff --stat fix-login\n  agency diff --base last-turn fix-login",
		Args:              command.Takes("RUN"),
		ValidArgsFunction: complete.Runs(d),
	}, o.run)
	cmd.Flags().BoolVar(&o.stat, "stat", false, "show how many lines of each file changed, as git does")
	cmd.Flags().BoolVarP(&o.ignoreSpace, "ignore-all-space", "w", false, "leave out lines that differ in white space only")
	cmd.Flags().IntVarP(&o.context, "unified", "U", 3, "show `N` lines around each change")
	cmd.Flags().BoolVar(&o.names, "name-only", false, "show only the names of the files")
	cmd.Flags().StringVar(&o.base, "base", "", "compare with this `BASE`: base (where the run began, the default), target (where it left the branch that it would land in) or last-turn")
	complete.Values(cmd, "base", api.DiffFromBase, api.DiffFromTarget, api.DiffFromLastTurn)
	return cmd
}

func (o *diffOptions) run(cmd *cobra.Command, args []string) error {
	if o.context < 1 {
		return agency.Errorf(agency.CodeUsage, "-U takes 1 line or more, not %d", o.context)
	}
	resp, err := command.Call(cmd.Context(), o.Deps, api.DiffRun, api.DiffRunRequest{Run: args[0], MaxBytes: 4 << 20, IgnoreSpace: o.ignoreSpace, Base: o.base, Context: o.context})
	if err != nil {
		return err
	}
	return o.Print(resp, func(w io.Writer) {
		switch {
		case o.names:
			for _, f := range resp.Files {
				_, _ = fmt.Fprintln(w, term.SafeLine(f.Path))
			}
		case o.stat:
			writeStat(w, resp.Files, resp.Patch, o.Columns())
		default:
			_, _ = io.WriteString(w, o.Patch(term.SafeText(resp.Patch)))
		}
		if len(resp.Files) == 0 && resp.LeftOut.Files == 0 && o.Columns() > 0 {
			o.Chat("nothing has changed since %s", since(o.base))
		}
		o.leftOut(&resp)
	})
}

// since returns the words for the base of a diff.
func since(base string) string {
	switch base {
	case api.DiffFromTarget:
		return "it left its target"
	case api.DiffFromLastTurn:
		return "its last turn began"
	default:
		return "it began"
	}
}

// leftOut prints what a difference does not show. The hints use the user's own repository, never
// the worktree: the agent chooses where its .git leads, and which programs git would run there.
func (o *diffOptions) leftOut(resp *api.DiffRunResponse) {
	if left := resp.LeftOut; left.Files > 0 {
		o.Chat("agency: note: %d files with %s are too much to look at:", left.Files, plain.ByteSize(left.Bytes))
		for _, f := range left.Named {
			o.Chat("  %s  %s", plain.ByteSize(f.Bytes), term.SafeLine(f.Path))
		}
		if more := left.Files - len(left.Named); more > 0 {
			o.Chat("  and %d more", more)
		}
	}
	if resp.Truncated && o.base == api.DiffFromLastTurn {
		o.Chat("agency: note: the rest is left out")
	} else if resp.Truncated {
		o.Chat("agency: note: the rest is left out; to see all of it, save it and compare: agency snapshot %s, then git -C %s diff %.12s REF, with the ref that it prints",
			resp.RunID, term.SafeLine(plain.ShellWord(resp.Repo)), resp.BaseCommit)
	}
}
