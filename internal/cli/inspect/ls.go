// Package inspect holds the commands that look at runs and wait for them: ls, show, explain, diff,
// logs, events, wait.
package inspect

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
)

type listOptions struct {
	*command.Deps

	all      bool
	allRepos bool
	repo     string
	session  string
	status   []string
	tag      string
	watch    bool
	standby  bool
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
		Long: `Lists the runs of this repository, or of all repositories outside of one: first
those that need you (they ask, are blocked, stalled, or ended their turn; of each the longest waiting
first), then the others, newest first. Marks: ● working, ◐ needs
you, ○ idle, ✕ failed, ✓ done.

On a terminal, the table has the columns that fit: a wide one adds AGE, RUNNER, DIFF and REPO (with
--all-repos); a narrow one leaves out PR if no run has one, and RUN_ID for runs with a NAME. A pipe
always gets RUN_ID, NAME, STATUS, SUMMARY and PR, uncut. DIFF counts the lines that a run added and
deleted, as of the last time when its agent was idle or ended.

With --watch on a terminal, j and k choose a run, and Enter attaches to it; a answers it, d shows its
diff, l its logs, x twice stops it, and q quits.

--standby lists the worktrees that agency made ahead of the next runs ([worktrees] standby).

--format takes columns (also AGE, RUNNER, DIFF, REPO), or a template of one line: {{.name}} is a field of a
run as --json has it, or a column; the status is the word that the table shows.`,
		Example: `  agency ls
  agency ls --status needs-input --all-repos
  agency ls --session active
  agency ls --watch
  agency ls --format name,status,age
  agency ls --format '{{.handle}}\t{{.branch}}'`,
		Args: command.Takes(),
	}, o.run)
	o.addFlags(cmd)
	return cmd
}

func (o *listOptions) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVarP(&o.all, "all", "a", false, "show removed runs too")
	f.BoolVar(&o.allRepos, "all-repos", false, "show the runs of every repository")
	f.StringVar(&o.repo, "repo", "", "show the runs of the repository at `PATH`")
	f.StringVar(&o.session, "session", "", "show the agents of `SESSION` in the order of its plan, with those that have not begun")
	f.StringSliceVar(&o.status, "status", nil, "show only runs with one of `STATUS,...`: working, needs-input, ready-for-review ...")
	f.StringVar(&o.tag, "tag", "", "show only runs with `TAG`")
	f.BoolVar(&o.standby, "standby", false, "show the worktrees that agency made ahead of runs, instead of runs")
	f.BoolVarP(&o.watch, "watch", "w", false, "stay and show changes as they happen")
	f.BoolVarP(&o.format.quiet, "quiet", "q", false, "print only the handles")
	f.StringVarP(&o.format.output, "output", "o", "", "print in this `FORMAT`: json, yaml, wide (every column, uncut) or name")
	f.StringVar(&o.format.format, "format", "", "print these `COLUMNS`, or a line for each run by a template")
	for _, other := range []string{"all", "repo", "status", "tag", "watch", "quiet", "output", "format"} {
		cmd.MarkFlagsMutuallyExclusive("standby", other)
	}
	for _, other := range []string{"all", "all-repos", "repo", "watch", "standby"} {
		cmd.MarkFlagsMutuallyExclusive("session", other)
	}
	_ = cmd.RegisterFlagCompletionFunc("session", func(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		return complete.Sessions(o.Deps)(cmd, nil, word)
	})
	complete.Values(cmd, "output", outputs...)
	complete.Values(cmd, "status", agency.LabelWords()...)
	columns := []string{}
	for _, c := range command.RunColumns() {
		columns = append(columns, strings.ToLower(string(c)))
	}
	complete.Values(cmd, "format", columns...)
	_ = cmd.RegisterFlagCompletionFunc("tag", complete.Tags(o.Deps))
}

func (o *listOptions) run(cmd *cobra.Command, _ []string) error {
	if o.standby {
		return o.listStandbys(cmd.Context())
	}
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
	var fields []string // all
	if !o.JSON {
		fields = o.format.fields(o.Columns() > 0)
	}
	if o.session != "" {
		if fields != nil {
			fields = append(fields, "id")
		}
		return o.listSession(cmd.Context(), client, fields)
	}
	req := o.request(fields)
	switch {
	case o.JSON:
		text, err := o.listText(cmd.Context(), client, req)
		if err != nil {
			return err
		}
		_, err = o.Out.Write(text)
		return err
	case o.format.output != "yaml":
		req.Order = api.OrderByNeed
	}
	resp, err := o.list(cmd.Context(), client, req)
	if err != nil {
		return err
	}
	if o.format.output == "yaml" {
		return command.YAML(o.Out, api.Success(resp))
	}
	if done, err := o.format.print(o.Out, o.Deps, resp.Runs); done {
		return err
	}
	if len(resp.Runs) == 0 {
		o.Chat("%s", o.nothing())
		return nil
	}
	_, _ = io.WriteString(o.Out, o.RunTable(resp.Runs, o.allRepos))
	return nil
}

// request returns the request for the runs that the options select: those of the repository that
// they name, of the one around the working directory, or all. fields are the fields of the runs;
// none means all.
func (o *listOptions) request(fields []string) api.ListRunsRequest {
	req := api.ListRunsRequest{Removed: o.all, Status: command.OrEmpty(o.status), Tag: o.tag, Fields: fields}
	if !o.allRepos {
		req.Dir = o.Dir
		if o.repo != "" {
			req.Dir = o.Absolute(o.repo)
		}
	}
	return req
}

// list asks for runs. Outside of a repository, and without --repo, it lists all runs.
func (o *listOptions) list(ctx context.Context, client *api.Client, req api.ListRunsRequest) (api.ListRunsResponse, error) {
	if o.repo != "" {
		return api.Call(ctx, client, api.ListRuns, req)
	}
	return command.ListAround(ctx, client, req)
}

// listText is list for the envelope that --json prints.
func (o *listOptions) listText(ctx context.Context, client *api.Client, req api.ListRunsRequest) ([]byte, error) {
	if o.repo != "" {
		return api.CallText(ctx, client, api.ListRuns, req)
	}
	return command.ListTextAround(ctx, client, req)
}

// nothing returns the text for an empty list.
func (o *listOptions) nothing() string {
	const start = `start one: agency run "fix the login test"`
	switch {
	case len(o.status) > 0 || o.tag != "":
		return "no run here has such a status or tag"
	case o.all:
		return "no runs here yet; " + start
	default:
		return "no runs here; removed ones: agency ls --all\n" + start
	}
}
