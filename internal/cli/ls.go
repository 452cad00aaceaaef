package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/term"
)

type listOptions struct {
	all      bool
	allRepos bool
	repo     string
	status   []string
	tag      string
	watch    bool
}

func (a *App) listCommand() *cobra.Command {
	o := &listOptions{}
	cmd := command(cobra.Command{
		Use:     "ls",
		Short:   "List runs with their status, newest last",
		GroupID: "inspect",
		Long: `Lists the runs of this repository, or of all repositories outside of one. Marks: ● working, ◐ needs you, ○ idle, ✕ failed,
✓ done.`,
		Example: `  agency ls
  agency ls --status needs-input --all-repos
  agency ls --watch`,
		Args: takes(),
	}, func(cmd *cobra.Command, _ []string) error {
		if o.watch {
			return a.watchList(cmd.Context(), o)
		}
		client, err := a.client()
		if err != nil {
			return err
		}
		resp, err := a.list(cmd.Context(), client, o)
		if err != nil {
			return err
		}
		return a.print(resp, func(w io.Writer) {
			if len(resp.Runs) == 0 {
				a.chat("%s", o.nothing())
				return
			}
			_, _ = io.WriteString(w, a.table(resp.Runs))
		})
	})
	f := cmd.Flags()
	f.BoolVar(&o.all, "all", false, "show removed runs too")
	f.BoolVar(&o.allRepos, "all-repos", false, "show the runs of every repository")
	f.StringVar(&o.repo, "repo", "", "show the runs of the repository at `PATH`")
	f.StringSliceVar(&o.status, "status", nil, "only these: working, needs-input, ready-for-review ...")
	f.StringVar(&o.tag, "tag", "", "only runs with this tag")
	f.BoolVar(&o.watch, "watch", false, "stay and show changes as they happen")
	_ = cmd.RegisterFlagCompletionFunc("status", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		words := []string{}
		for _, l := range agency.Labels() {
			words = append(words, strings.ReplaceAll(string(l), " ", "-"))
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

// list asks for the runs of the repository that the options or the working directory mean. Outside of any repository, and
// without --repo, it is all runs.
func (a *App) list(ctx context.Context, client *api.Client, o *listOptions) (api.ListRunsResponse, error) {
	req := api.ListRunsRequest{Removed: o.all, Status: orEmpty(o.status), Tag: o.tag}
	if !o.allRepos {
		req.Dir = a.Dir
		if o.repo != "" {
			req.Dir = a.absolute(o.repo)
		}
	}
	if o.repo != "" {
		return api.Call(ctx, client, api.ListRuns, req)
	}
	return listAround(ctx, client, req)
}

// listAround asks for the runs of the repository around req.Dir, or outside of any for all.
func listAround(ctx context.Context, client *api.Client, req api.ListRunsRequest) (api.ListRunsResponse, error) {
	resp, err := api.Call(ctx, client, api.ListRuns, req)
	if agency.IsCode(err, agency.CodeNotGitRepo) {
		req.Dir = ""
		resp, err = api.Call(ctx, client, api.ListRuns, req)
	}
	return resp, err
}

// nothing says what an empty list means.
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

const summaryColumns = 40

// table writes runs as people read them: on a terminal in as many columns as it has, elsewhere in as many as it takes.
func (a *App) table(runs []api.Run) string {
	rows := [][]string{{"RUN_ID", "NAME", "STATUS", "SUMMARY", "PR"}}
	room, onTerminal := term.Columns(a.Out)
	for i := range runs {
		r := &runs[i]
		pr := "-"
		if r.PRNumber != nil {
			pr = fmt.Sprintf("#%d", *r.PRNumber)
		}
		status := string(r.Status)
		if r.RemovedAt != nil {
			status += " (removed)"
		}
		rows = append(rows, []string{r.Handle, orDash(r.Name), r.Status.Mark() + " " + status, term.Fit(term.SafeLine(orProblem(r)), summaryColumns), pr})
	}
	paint := func(_ int, s string) string { return s }
	if a.colour(a.Out) {
		paint = func(row int, s string) string {
			if row == 0 {
				return "\x1b[2m" + s + "\x1b[0m"
			}
			return colourOf(runs[row-1].Status) + s + "\x1b[0m"
		}
	}
	if !onTerminal {
		return term.PaintedTable(rows, 2, paint)
	}
	squeeze(rows, room)
	var b strings.Builder
	for line := range strings.Lines(term.PaintedTable(rows, 2, paint)) {
		b.WriteString(ansi.Truncate(strings.TrimSuffix(line, "\n"), room, "…") + "\n")
	}
	return b.String()
}

// orProblem is the summary of a run, or what is wrong with it.
func orProblem(r *api.Run) string { return cmp.Or(r.Problem, r.Summary) }

// squeeze cuts the cells of a table of runs that is too wide: first the handle, of which a beginning will do to name the run,
// then the summary and the name.
func squeeze(rows [][]string, room int) {
	term.Narrow(rows, room, []term.Cut{{0, 14}, {3, 24}, {1, 12}, {3, 8}, {0, 8}, {1, 8}})
}

func colourOf(l agency.Label) string { return markColour(l.Mark()) }

func markColour(mark string) string {
	switch mark {
	case "●":
		return "\x1b[32m"
	case "◐":
		return "\x1b[33m"
	case "✕":
		return "\x1b[31m"
	case "✓":
		return "\x1b[36m"
	default:
		return "\x1b[2m"
	}
}
