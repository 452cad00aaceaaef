// Package inspect holds the commands that look at runs and wait for them: ls, show, explain, diff,
// logs, events, wait.
package inspect

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/view"
)

type listOptions struct {
	*command.Deps

	all      bool
	allRepos bool
	repo     string
	status   []string
	tag      string
	watch    bool
	format   format
}

// NewList returns the command agency ls.
func NewList(d *command.Deps) *cobra.Command {
	o := &listOptions{Deps: d}
	cmd := command.New(cobra.Command{
		Use:     "ls",
		Aliases: []string{"list", "ps"},
		Short:   "List runs with their status, those that need you first",
		GroupID: "inspect",
		Long: `Lists the runs of this repository, or of all repositories outside of one:
first those that need you, the longest waiting on top, then the others, newest first. Marks: ● working,
◐ needs you, ○ idle, ✕ failed, ✓ done.

A terminal shows the columns that it has room for: AGE, RUNNER and REPO (with --all-repos) join on a
wide one; on a narrow one PR is left out while no run has one, and RUN_ID for runs with a NAME. In a
pipe there are always RUN_ID, NAME, STATUS, SUMMARY and PR, uncut.

With --watch on a terminal, j and k choose a run, and Enter attaches to it; a answers it, d shows its
diff, l its logs, x twice stops it, and q quits.

--format takes columns (also AGE, RUNNER, REPO), or a template of one line: {{.name}} is a field of a
run as --json has it, or a column.`,
		Example: `  agency ls
  agency ls --status needs-input --all-repos
  agency ls --watch
  agency ls --format name,status,age
  agency ls --format '{{.handle}}\t{{.branch}}'`,
		Args: command.Takes(),
	}, o.run)
	f := cmd.Flags()
	f.BoolVarP(&o.all, "all", "a", false, "show removed runs too")
	f.BoolVar(&o.allRepos, "all-repos", false, "show the runs of every repository")
	f.StringVar(&o.repo, "repo", "", "show the runs of the repository at `PATH`")
	f.StringSliceVar(&o.status, "status", nil, "only these: working, needs-input, ready-for-review ...")
	f.StringVar(&o.tag, "tag", "", "only runs with this tag")
	f.BoolVarP(&o.watch, "watch", "w", false, "stay and show changes as they happen")
	f.BoolVarP(&o.format.quiet, "quiet", "q", false, "print only the handles")
	f.StringVarP(&o.format.output, "output", "o", "", "`FORMAT`: json, yaml, wide (every column, uncut) or name")
	f.StringVar(&o.format.format, "format", "", "print these `COLUMNS`, or a line for each run by a template")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(outputs, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("status", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return agency.LabelWords(), cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

func (o *listOptions) run(cmd *cobra.Command, _ []string) error {
	if err := o.format.check(o.JSON, o.watch); err != nil {
		return err
	}
	o.JSON = o.JSON || o.format.output == "json"
	if o.watch {
		return o.watchList(cmd.Context())
	}
	client, err := o.Client()
	if err != nil {
		return err
	}
	var fields []string
	if o.format.isColumns() && !o.JSON {
		fields = command.RunFields()
	}
	resp, err := o.list(cmd.Context(), client, fields)
	if err != nil {
		return err
	}
	switch {
	case o.JSON:
		return o.Print(resp, nil)
	case o.format.output == "yaml":
		return command.YAML(o.Out, api.Success(resp))
	}
	runs := view.ByNeed(resp.Runs)
	if done, err := o.format.print(o.Out, o.Deps, runs); done {
		return err
	}
	if len(runs) == 0 {
		o.Chat("%s", o.nothing())
		return nil
	}
	_, _ = io.WriteString(o.Out, o.RunTable(runs, o.allRepos))
	return nil
}

// list asks for the runs of the repository that the options or the working directory mean. Outside
// of any repository, and without --repo, it is all runs. They have the given fields; none means all.
func (o *listOptions) list(ctx context.Context, client *api.Client, fields []string) (api.ListRunsResponse, error) {
	req := api.ListRunsRequest{Removed: o.all, Status: command.OrEmpty(o.status), Tag: o.tag, Fields: fields}
	if !o.allRepos {
		req.Dir = o.Dir
		if o.repo != "" {
			req.Dir = o.Absolute(o.repo)
		}
	}
	if o.repo != "" {
		return api.Call(ctx, client, api.ListRuns, req)
	}
	return command.ListAround(ctx, client, req)
}

// nothing returns what an empty list means.
func (o *listOptions) nothing() string {
	const start = `start one: agency run --prompt "fix the login test"`
	switch {
	case len(o.status) > 0 || o.tag != "":
		return "no run here has such a status or tag"
	case o.all:
		return "no runs here yet; " + start
	default:
		return "no runs here; removed ones: agency ls --all   " + start
	}
}
