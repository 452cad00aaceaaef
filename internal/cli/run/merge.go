package run

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
	"agency/internal/cli/term"
	"agency/internal/plain"
)

// mergeOptions are the flags and dependencies of agency merge.
type mergeOptions struct {
	remoteOptions

	req  api.MergeRunRequest
	push bool
}

// NewMerge returns the command agency merge.
func NewMerge(d *command.Deps) *cobra.Command {
	o := &mergeOptions{remoteOptions: remoteOptions{Deps: d}}
	cmd := command.New(cobra.Command{
		Use:     "merge RUN|SESSION",
		Short:   "Bring the work of a run or a session into a branch",
		GroupID: "run",
		Long: `Brings the commits of a run into a branch: by default as one commit, into the
branch that the run began at or that you have checked out. agency makes and checks the new commit
apart from every checkout. A checkout of the branch moves along if that overwrites nothing there;
your changes in other files stay as they are. agency stashes nothing, and runs no hook of git.

agency first runs the checks of the branch, [[check]] in its agency.toml, on exactly that commit,
and refuses to land it when one does not pass (see agency verify). It also refuses when the agent
did not commit all its work, unless you give --include-uncommitted. --undo takes a landing back by
its id, while nothing was built on it.

A session that has settled lands run by run, up to the first refusal, whose error names what landed.
agency lands the completed agents whose work no other agent has: the work of an agent includes that
of the agents before it.

--push then pushes the branch, as agency push does, and never by force. If the remote has commits
that the branch lacks, the work lands here and agency does not push it. Given again, --push pushes
what has landed.

agency review shows what would land. [landing] in agency.toml or your configuration changes the
defaults.`,
		Example: `  agency merge fix-login
  agency merge fix-login --into develop --method rebase
  agency merge fix-login --push
  agency merge --undo l_01KJP0Q6W3Z8J5T2V7Y4X9R1AB`,
		Args:              o.takes,
		ValidArgsFunction: complete.Work(d),
	}, o.run)
	f := cmd.Flags()
	f.StringVar(&o.req.Into, "into", "", "land in the target `BRANCH` (default: [landing] target, the branch that the run began at, or the one that you have checked out)")
	f.StringVar(&o.req.Method, "method", "", "land the commits by this `METHOD`: squash, ff, merge or rebase")
	f.StringVarP(&o.req.Message, "message", "m", "", "the message of the commit as `TEXT` (default: from the run's commits and report)")
	f.BoolVar(&o.req.IncludeUncommitted, "include-uncommitted", false, "land what the agent did not commit too")
	f.BoolVar(&o.req.DryRun, "dry-run", false, "make the commit and print what is in its way; run no check, and move nothing")
	f.BoolVar(&o.req.NoVerify, "no-verify", false, "do not run the checks of the target")
	f.BoolVar(&o.req.Approve, "approve", false, "land work that changes what the checks run")
	f.StringVar(&o.req.Undo, "undo", "", "take back this `LANDING`")
	f.BoolVar(&o.push, "push", false, "then push the target to a remote")
	o.flags(cmd)
	methods := []string{}
	for _, m := range agency.LandingMethods() {
		methods = append(methods, string(m))
	}
	complete.Values(cmd, "method", methods...)
	_ = cmd.RegisterFlagCompletionFunc("into", complete.Bases(d))
	_ = cmd.RegisterFlagCompletionFunc("undo", complete.Landings(d))
	cmd.MarkFlagsMutuallyExclusive("push", "dry-run")
	for _, other := range []string{"approve", "dry-run", "include-uncommitted", "into", "message", "method", "no-verify", "push"} {
		cmd.MarkFlagsMutuallyExclusive("undo", other)
	}
	return cmd
}

// takes accepts one run or session, and no arguments with --undo.
func (o *mergeOptions) takes(cmd *cobra.Command, args []string) error {
	if o.req.Undo != "" {
		return command.Takes()(cmd, args)
	}
	if len(args) > 1 {
		words := []string{}
		for _, arg := range args {
			words = append(words, plain.ShellWord(arg))
		}
		return agency.Errorf(agency.CodeUsage, "agency merge takes one RUN or SESSION, and was given %d", len(args)).
			WithHint("several land one after the other: agency queue add %s", strings.Join(words, " "))
	}
	return command.Takes("RUN")(cmd, args)
}

func (o *mergeOptions) run(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		o.req.Run = args[0]
	}
	for _, name := range []string{"remote", "timeout"} {
		if cmd.Flags().Changed(name) && !o.push {
			return agency.Errorf(agency.CodeUsage, "--%s is about a push, and --push is not given", name).WithHint("agency merge --help")
		}
	}
	o.req.Env, o.req.Config, o.req.Landed = o.Env, o.CallerConfig(), o.push
	return withFlags(cmd, o.land(cmd))
}

// withFlags adds the flags of the command to the hint to land uncommitted work.
func withFlags(cmd *cobra.Command, err error) error {
	const flag = " --include-uncommitted"
	if !agency.IsCode(err, agency.CodeUncommitted) {
		return err
	}
	e := agency.AsError(err)
	given := ""
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Changed {
			return
		}
		given += " --" + f.Name
		if f.Value.Type() != "bool" {
			given += " " + plain.ShellWord(f.Value.String())
		}
	})
	e.Hint = strings.Replace(e.Hint, flag, given+flag, 1)
	return e
}

func (o *mergeOptions) land(cmd *cobra.Command) error {
	resp, err := command.Call(cmd.Context(), o.Deps, api.MergeRun, o.req)
	if agency.IsCode(err, agency.CodeRunNotFound) && o.req.Undo == "" && o.req.Message == "" {
		return o.mergeSession(cmd.Context(), err)
	}
	if err != nil {
		return err
	}
	pushed, err := o.pushTarget(cmd.Context(), resp)
	if err != nil {
		return err
	}
	return o.Print(pushed.answer(resp), func(w io.Writer) {
		o.landed(w, &resp)
		pushed.print(w)
	})
}

// mergeSession lands the session that the argument names. If there is none, it returns noRun.
func (o *mergeOptions) mergeSession(ctx context.Context, noRun error) error {
	resp, err := command.Call(ctx, o.Deps, api.MergeSession, api.MergeSessionRequest{
		Session: o.req.Run, Dir: o.Dir, Into: o.req.Into, Method: o.req.Method, IncludeUncommitted: o.req.IncludeUncommitted, DryRun: o.req.DryRun,
		NoVerify: o.req.NoVerify, Approve: o.req.Approve, Landed: o.req.Landed, Env: o.req.Env, Config: o.req.Config,
	})
	if agency.IsCode(err, agency.CodeSessionNotFound) {
		return noRun
	}
	if err != nil {
		return err
	}
	pushed, err := o.pushTarget(ctx, resp.Landings...)
	if err != nil {
		return err
	}
	return o.Print(pushed.answer(resp), func(w io.Writer) {
		for i := range resp.Landings {
			o.landed(w, &resp.Landings[i])
		}
		for _, line := range command.Parts(resp.Parts) {
			_, _ = fmt.Fprintln(w, line)
		}
		pushed.print(w)
	})
}

// landed prints one landing, whether it was made or taken back.
func (o *mergeOptions) landed(w io.Writer, resp *api.MergeRunResponse) {
	l := &resp.Landing
	ref, target := resp.Run.Ref(), term.SafeLine(l.Target)
	commits, files := command.Count(len(resp.Commits), "commit"), command.Count(len(resp.Files), "file")
	switch {
	case resp.Already && o.req.Undo == "":
		_, _ = fmt.Fprintf(w, "%s has landed in %s already, as %.12s\n", ref, target, l.Candidate)
	case resp.Already:
		_, _ = fmt.Fprintf(w, "%s was taken back already\n", l.ID)
	case o.req.Undo != "":
		_, _ = fmt.Fprintf(w, "%s is back at %.12s, without %s\n", target, l.TargetOld, ref)
	case o.req.DryRun:
		_, _ = fmt.Fprintf(w, "%s would land in %s: %s, %s changed\n", ref, target, commits, files)
	default:
		_, _ = fmt.Fprintf(w, "%s landed in %s as %.12s: %s, %s changed\n", ref, target, l.Candidate, commits, files)
		if !o.push {
			o.Chat("take it back: agency merge --undo %s", l.ID)
		}
	}
	if resp.Removed {
		o.Chat("%s is removed", ref)
	}
	for _, warning := range resp.Warnings {
		o.Chat("agency: note: %s", term.SafeLine(warning))
	}
}

// NewAbandon returns the command agency abandon.
func NewAbandon(d *command.Deps) *cobra.Command {
	undo := false
	cmd := command.New(cobra.Command{
		Use:     "abandon RUN",
		Short:   "Mark an ended run as given up; nothing is deleted",
		GroupID: "run",
		Long: `Marks an ended run whose work you do not want. Its worktree, branch and record
stay until agency rm. You cannot merge it until you remove the mark with --undo, or resume the run.`,
		Example: "  agency abandon fix-login\n  agency abandon --undo fix-login",
		Args:    command.Takes("RUN"),
	}, func(cmd *cobra.Command, args []string) error {
		resp, err := command.Call(cmd.Context(), d, api.AbandonRun, api.AbandonRunRequest{Run: args[0], Undo: undo})
		if err != nil {
			return err
		}
		return d.Print(resp, func(w io.Writer) {
			if undo {
				_, _ = fmt.Fprintf(w, "%s is no longer abandoned\n", resp.Run.Ref())
				return
			}
			_, _ = fmt.Fprintf(w, "%s is abandoned\n", resp.Run.Ref())
		})
	})
	cmd.Flags().BoolVar(&undo, "undo", false, "remove the mark")
	cmd.ValidArgsFunction = complete.Runs(d)
	return cmd
}

// NewPath returns the command agency path.
func NewPath(d *command.Deps) *cobra.Command {
	cmd := command.New(cobra.Command{
		Use:     "path RUN",
		Short:   "Print the worktree of a run",
		GroupID: "run",
		Example: `  agency path fix-login
  cd "$(agency path fix-login)"`,
		Args: command.Takes("RUN"),
	}, func(cmd *cobra.Command, args []string) error {
		resp, err := command.Call(cmd.Context(), d, api.ListRuns, api.ListRunsRequest{Run: args[0], Removed: true})
		if err != nil {
			return err
		}
		r := &resp.Runs[0]
		if r.RemovedAt != nil {
			return agency.Errorf(agency.CodeInvalidState, "%s is removed and has no worktree", r.Ref()).
				WithHint("what it changed: agency diff %s; what was saved of it: agency snapshot ls %s", r.Handle, r.Handle)
		}
		return d.Print(map[string]any{"run_id": r.ID, "worktree_path": r.Worktree}, func(w io.Writer) {
			_, _ = fmt.Fprintln(w, strings.TrimRight(term.SafeLine(r.Worktree), "\n"))
		})
	})
	cmd.ValidArgsFunction = complete.Runs(d)
	return cmd
}
